/** A server that is measured: a process of its own, on ports of its own. */
export interface Server extends AsyncDisposable {
  readonly name: string;
  readonly pid: number;
  /** Undefined when it does not speak it. */
  readonly grpcPort: number | undefined;
  readonly httpPort: number | undefined;
  readonly databasePath: string;
}

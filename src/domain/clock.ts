/** The two clocks of the service, both in microseconds since the epoch. */
export interface Clock {
  /** The wall clock: timestamps and feed positions. It may step. */
  wallUs(): number;
  /** Monotonic inside a process: leases and time-outs. Begins at the wall clock. */
  steadyUs(): number;
}

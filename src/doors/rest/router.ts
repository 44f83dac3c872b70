import { nearest } from "../../domain/edit-distance.ts";
import { ServiceError } from "../../domain/errors.ts";
import type { Route, Verb } from "./route.ts";

/** A path that is served: its routes by verb, and what its segments name. */
export interface Match {
  readonly route: Route;
  readonly params: Readonly<Record<string, string>>;
}

interface Node {
  readonly fixed: Map<string, Node>;
  named: Node | undefined;
  readonly routes: Map<string, Route>;
}

/** A path with more wrong letters is not one of ours, misspelled. */
const misspellingMax = 3;

/** Finds routes by their segments; a fixed segment goes before a named one. */
export class Router {
  readonly #root: Node = emptyNode();
  readonly #paths: readonly string[];

  constructor(routes: readonly Route[]) {
    for (const route of routes) this.#add(route);
    this.#paths = [...new Set(routes.map(({ path }) => path))];
  }

  /** `path`: below `/api/v1`. Throws ROUTE_NOT_FOUND, METHOD_NOT_ALLOWED. */
  match(verb: string, path: string): Match {
    const segments = path.split("/").slice(1);
    const node = this.#find(segments);
    if (node === undefined || node.routes.size === 0) throw this.#notFound(path);
    // (Of an answer to HEAD, the server of HTTP sends no body.)
    const route = node.routes.get(verb === "HEAD" ? "GET" : verb);
    if (route === undefined) throw notAllowed(verb, node);
    return { route, params: paramsOf(route, segments) };
  }

  #add(route: Route): void {
    let node = this.#root;
    for (const segment of route.segments) {
      const next = segment.startsWith(":")
        ? (node.named ?? emptyNode())
        : (node.fixed.get(segment) ?? emptyNode());
      if (segment.startsWith(":")) node.named = next;
      else node.fixed.set(segment, next);
      node = next;
    }
    node.routes.set(route.verb, route);
  }

  #find(segments: readonly string[]): Node | undefined {
    let node: Node | undefined = this.#root;
    for (const segment of segments) {
      node = node?.fixed.get(segment) ?? (segment === "" ? undefined : node?.named);
    }
    return node;
  }

  #notFound(path: string): ServiceError {
    const near = nearest(path, this.#paths, misspellingMax);
    const advice = near === undefined ? "" : `. Did you mean /api/v1${near}?`;
    return new ServiceError("ROUTE_NOT_FOUND", `No such path${advice}`);
  }
}

function emptyNode(): Node {
  return { fixed: new Map(), named: undefined, routes: new Map() };
}

function notAllowed(verb: string, { routes }: Node): ServiceError {
  const verbs: string[] = [...routes.keys()] satisfies (Verb | string)[];
  const allow = verbs.join(", ");
  return new ServiceError("METHOD_NOT_ALLOWED", `${verb} is not served here; ${allow} is`, {
    headers: { allow },
  });
}

function paramsOf({ segments }: Route, asked: readonly string[]): Record<string, string> {
  const params: Record<string, string> = {};
  for (const [i, segment] of segments.entries()) {
    if (segment.startsWith(":")) params[segment.slice(1)] = decode(asked[i] ?? "");
  }
  return params;
}

/** A segment that is not percent-encoded UTF-8 names nothing. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    throw new ServiceError("ROUTE_NOT_FOUND", "The path is not percent-encoded UTF-8");
  }
}

import { describe } from "vitest";
import { clockSuite } from "./clocks.ts";
import { leaseSuite } from "./leases.ts";

// All of these wait for leases of 5 s to run out: they wait together, the longest first.
const options = { concurrent: true, timeout: 120_000 };
describe("wrong clocks", options, clockSuite);
describe("a lease", options, leaseSuite);

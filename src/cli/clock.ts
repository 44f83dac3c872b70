import type { Clock } from "../domain/clock.ts";

/** The clocks of this machine. The wall clock is asked each time, so that it follows steps. */
export function systemClock(): Clock {
  const startUs = Date.now() * 1000;
  const startMs = performance.now();
  return {
    wallUs: () => Date.now() * 1000,
    steadyUs: () => startUs + Math.floor((performance.now() - startMs) * 1000),
  };
}

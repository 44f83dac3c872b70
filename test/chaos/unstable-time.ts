/**
 * Loaded before the server (`node --import`): its time runs TIME_SPEED times as fast, so that a
 * lease of seconds is over in fractions of one, and its wall clock steps when its parent says so.
 */
const speed = Number(process.env["TIME_SPEED"] ?? "1");
let stepMs = Number(process.env["TIME_STEP_MS"] ?? "0");

const realNow = Date.now;
const realMonotonic = performance.now.bind(performance);
const beganMs = realNow();

const fastMs = () => beganMs + (realNow() - beganMs) * speed + stepMs;
Date.now = () => Math.floor(fastMs());
globalThis.Date = new Proxy(Date, {
  construct: (target, args) =>
    Reflect.construct(target, args.length === 0 ? [Date.now()] : args) as object,
});
performance.now = () => realMonotonic() * speed;

const { setTimeout: realTimeout, setInterval: realInterval } = globalThis;
globalThis.setTimeout = Object.assign(
  (work: () => void, ms = 0, ...args: []) => realTimeout(work, ms / speed, ...args),
  realTimeout,
);
globalThis.setInterval = Object.assign(
  (work: () => void, ms = 0, ...args: []) => realInterval(work, ms / speed, ...args),
  realInterval,
);

process.on("message", (message: { readonly stepMs: number }) => {
  stepMs = message.stepMs;
});
// The parent's wish to step it must not keep the server alive.
process.channel?.unref();

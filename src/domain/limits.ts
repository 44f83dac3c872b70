/** Every limit of the service that is not a setting. The contract states the same numbers. */
const KiB = 1024;
const MiB = 1024 * KiB;

const secondUs = 1_000_000;
const minuteUs = 60 * secondUs;
const hourUs = 60 * minuteUs;
const dayUs = 24 * hourUs;

export const limits = {
  /** One request, refused while it arrives. */
  requestBytesMax: 4 * MiB,
  /** Nesting of a JSON body, and of JSON text inside one. */
  jsonDepthMax: 100,
  /** Payload bytes in one page of a pull, and in the results of a batch. */
  pageBytesMax: 3 * MiB,
  /** `encryptedData` in an error; above it only `dataOmitted`. */
  errorDataBytesMax: 2 * KiB,
  /** All details of one error together. */
  errorDetailsBytesMax: 4 * KiB,
  /** Entries of a list in an error. */
  errorListMax: 20,
  pageSizeMax: 200,
  /** Agents that an answer names as those that might take an execution. */
  candidatesMax: 20,
  workflowPageSize: 50,
  agentPageSize: 200,
  executionPageSize: 50,
  pullRecordsMax: 1000,
  queuedExecutionsMax: 10_000,
  queuedRoutesMax: 256,
  streamsPerOwnerMax: 200,
  pollsPerOwnerMax: 1000,
  tasksPerPollMax: 32,
  attemptsMax: 100,
  attemptsDefault: 3,
  /** The lost lease that ends an execution. */
  lossesMax: 5,
} as const;

/** Spans of time, in microseconds unless the name says otherwise. */
export const spans = {
  executeWaitMs: 10_000,
  executeWaitMaxMs: 60_000,
  pollWaitMs: 10_000,
  pollWaitMaxMs: 30_000,
  pullWaitMaxMs: 30_000,
  heartbeatWaitMaxMs: 30_000,
  /** Subtracted from a caller's deadline, so that the answer arrives before it. */
  deadlineMarginMs: 200,
  /** How long an ended poll still counts as listening. */
  listeningMs: 35_000,
  streamHeartbeatMs: 15_000,
  streamHeartbeatMaxMs: 60_000,
  /** A stream that could send nothing for so long is closed as a slow consumer. */
  streamStallMs: 30_000,
  leaseUs: 30 * secondUs,
  leaseMaxUs: 10 * minuteUs,
  timeoutUs: 15 * minuteUs,
  startTimeoutUs: 24 * hourUs,
  timeoutMaxUs: 7 * dayUs,
  cancelGraceUs: 10 * secondUs,
  retryFirstUs: secondUs,
  retryMaxUs: minuteUs,
  /** How often a sign of life is written at most. */
  lastSeenStepUs: minuteUs,
  mutationKeptUs: 7 * dayUs,
  deletedKeptUs: 30 * dayUs,
  executionKeptUs: 30 * dayUs,
} as const;

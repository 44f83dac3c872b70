/**
 * What a stream brings, in batches of what is there already: one item in quiet times, more when
 * they come faster than they are taken.
 */
export async function* settledBatches<Item>(
  stream: AsyncIterable<Item>,
  countMax: number,
): AsyncGenerator<readonly Item[]> {
  const iterator = stream[Symbol.asyncIterator]();
  const readAhead = () => {
    const reading = iterator.next();
    // It may fail while nobody looks; whoever awaits it is told nevertheless.
    reading.catch(() => {});
    return reading;
  };
  for (let next = readAhead(); ; ) {
    const first = await next;
    if (first.done === true) return;
    const batch = [first.value];
    next = readAhead();
    while (batch.length < countMax) {
      const result = await arrived(next);
      if (result === undefined) break;
      batch.push(result);
      next = readAhead();
    }
    yield batch;
  }
}

/** Undefined when nothing has come by the next turn of the event loop; an end is for later. */
async function arrived<Item>(next: Promise<IteratorResult<Item>>): Promise<Item | undefined> {
  const turn = new Promise<undefined>((resolve) => setTimeout(resolve, 0));
  const result = await Promise.race([next.catch(() => undefined), turn]);
  return result === undefined || result.done === true ? undefined : result.value;
}

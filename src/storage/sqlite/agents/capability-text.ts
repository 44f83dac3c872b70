/** Capabilities in a column: sorted, joined by commas, which no capability holds. */
export function joinCapabilities(capabilities: readonly string[]): string {
  return capabilities.join(",");
}

export function splitCapabilities(text: string): readonly string[] {
  return text === "" ? [] : text.split(",");
}

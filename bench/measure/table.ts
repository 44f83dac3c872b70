/** Figures as they are shown: a title, a head, and rows of as many cells. */
export interface Table {
  readonly title: string;
  readonly head: readonly string[];
  readonly rows: readonly (readonly string[])[];
}

/** The table as text: the first column to the left, the others, which are figures, to the right. */
export function tableText({ title, head, rows }: Table): string {
  const widths = head.map((cell, i) =>
    Math.max(cell.length, ...rows.map((row) => row[i]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) => {
    const padded = widths.map((width, i) => {
      const cell = cells[i] ?? "";
      return i === 0 ? cell.padEnd(width) : cell.padStart(width);
    });
    return `  ${padded.join("  ")}`.trimEnd();
  };
  const rule = widths.map((width) => "-".repeat(width));
  return `${[title, line(head), line(rule), ...rows.map(line)].join("\n")}\n`;
}

/** Three significant digits at least: 12,345 · 123 · 12.3 · 1.23. */
export function figure(value: number): string {
  if (!Number.isFinite(value)) return "-";
  const size = Math.abs(value);
  const digits = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: digits,
    maximumFractionDigits: digits,
  });
}

/** Bytes in MiB. */
export function mebibytes(bytes: number): string {
  return figure(bytes / (1024 * 1024));
}

/** A table of rows, whose cells become labelled lines where the page is narrow. */

import type { ComponentChildren, JSX } from "preact";

export interface Column<Row> {
  readonly title: string;
  /** Figures stand at the right. */
  readonly figure?: boolean;
  cell(row: Row): ComponentChildren;
}

interface TableProps<Row> {
  readonly name: string;
  readonly rows: readonly Row[];
  readonly columns: readonly Column<Row>[];
  keyOf(row: Row): string;
}

export function Table<Row>({ name, rows, columns, keyOf }: TableProps<Row>): JSX.Element {
  return (
    <table aria-label={name}>
      <thead>
        <tr>
          {columns.map(({ title, figure }) => (
            <th key={title} scope="col" class={figure ? "figure" : ""}>
              {title}
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={keyOf(row)}>
            {columns.map(({ title, figure, cell }) => (
              <td key={title} data-title={title} class={figure ? "figure" : ""}>
                <div class="cell">{cell(row)}</div>
              </td>
            ))}
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** What operators see and do. */

import type { JSX } from "preact";

import type { OperatePage } from "./route.ts";

export function OperatePages({ part }: { readonly part: OperatePage }): JSX.Element {
  return <p>{part}</p>;
}

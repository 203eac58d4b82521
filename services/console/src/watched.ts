/** A value that pages show as it changes. */

import { useEffect, useState } from "preact/hooks";

export class Watched<T> {
  #value: T;
  readonly #watchers = new Set<(value: T) => void>();

  constructor(value: T) {
    this.#value = value;
  }

  get value(): T {
    return this.#value;
  }

  set(value: T): void {
    if (Object.is(value, this.#value)) return;
    this.#value = value;
    for (const watcher of [...this.#watchers]) watcher(value);
  }

  /** Call `watcher` with each new value; what is returned ends it. */
  watch(watcher: (value: T) => void): () => void {
    this.#watchers.add(watcher);
    return () => this.#watchers.delete(watcher);
  }
}

/** The value now; the component is drawn again with each new one. */
export function useWatched<T>(watched: Watched<T>): T {
  const [, redraw] = useState<object>({});
  useEffect(() => {
    redraw({}); // it may have changed between the drawing and now
    return watched.watch(() => redraw({}));
  }, [watched]);
  return watched.value;
}

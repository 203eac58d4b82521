/** JSON that means one thing: a flat object with no unknown field, no wrong type, no name twice, bytes in their one spelling. */

import { type Bytes, fromBase64 } from "./bytes.ts";

/** Reads the fields of one object. Every refusal is thrown as `refusal` makes it; it never quotes the input. */
export class Fields {
  readonly #values: Map<string, unknown>;
  readonly #refusal: () => Error;

  constructor(text: string, refusal: () => Error) {
    this.#refusal = refusal;
    this.#values = new Map(Object.entries(this.#parsed(text)));
    // JSON.parse lets the last of two equal names win. Nothing is nested, so each colon outside of a string is a member's.
    const flat = [...this.#values.values()].every((value) => value === null || typeof value !== "object");
    const members = text.replace(/"(?:[^"\\]|\\.)*"/g, "").split(":").length - 1;
    if (!flat || members !== this.#values.size) throw refusal();
  }

  /** One of these words. */
  oneOf<Word extends string>(name: string, words: readonly Word[]): Word {
    const value = this.#taken(name);
    return words.find((word) => word === value) ?? this.#refused();
  }

  /** A text of 1 to `most` characters. */
  text(name: string, most: number): string {
    const value = this.#taken(name);
    return typeof value === "string" && value.length > 0 && value.length <= most ? value : this.#refused();
  }

  /** The same, or null: so written or left out. */
  textOrNull(name: string, most: number): string | null {
    if ((this.#values.get(name) ?? null) !== null) return this.text(name, most);
    this.#values.delete(name);
    return null;
  }

  /** Exactly `length` bytes in base64. */
  bytes(name: string, length: number): Bytes {
    const value = this.#taken(name);
    const bytes = typeof value === "string" ? fromBase64(value) : null;
    return bytes?.length === length ? bytes : this.#refused();
  }

  /** A position: a whole number from 0. */
  position(name: string): number {
    const value = this.#taken(name);
    return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : this.#refused();
  }

  /** Nothing else may be there. */
  end(): void {
    if (this.#values.size > 0) this.#refused();
  }

  #parsed(text: string): object {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
    } catch {
      // It is no JSON at all.
    }
    return this.#refused();
  }

  #taken(name: string): unknown {
    const value = this.#values.get(name);
    this.#values.delete(name);
    return value;
  }

  #refused(): never {
    throw this.#refusal();
  }
}

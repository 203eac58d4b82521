/**
 * What the browser keeps over a reload: the device that it is, and the host keys that its person trusts.
 *
 * IndexedDB, because it alone keeps keys that nobody can export. Whoever clears the site's data has no device any more; the
 * relay then still lists one, which another device can revoke.
 */

import type { Bytes } from "../channel/index.ts";
import type { Keys } from "./keys.ts";

/** Who this browser is at this relay. */
export interface Identity {
  readonly deviceId: string;
  readonly deviceName: string;
  readonly personId: string;
  readonly personName: string;
  readonly keys: Keys;
}

/** A host key that the person accepted. */
export interface Pin {
  readonly hostId: string;
  readonly hostName: string;
  readonly channelKey: Bytes;
}

const DEVICE = "device";
const PINS = "pins";

/** One database for each relay, since a page sees only what is its origin's. */
export class Vault {
  readonly #database: IDBDatabase;

  private constructor(database: IDBDatabase) {
    this.#database = database;
  }

  /** Throws a DOMException where the browser keeps nothing, as in some private windows. */
  static async open(): Promise<Vault> {
    const request = indexedDB.open("bothy", 1);
    request.onupgradeneeded = () => {
      request.result.createObjectStore(DEVICE);
      request.result.createObjectStore(PINS, { keyPath: "hostId" });
    };
    const database = await done(request);
    database.onversionchange = () => database.close(); // a newer page in another tab
    return new Vault(database);
  }

  identity(): Promise<Identity | undefined> {
    return done<Identity | undefined>(this.#store(DEVICE, "readonly").get(DEVICE));
  }

  async keep(identity: Identity): Promise<void> {
    await done(this.#store(DEVICE, "readwrite").put(identity, DEVICE));
  }

  /** Forget the device. Pins stay: they are true whoever signs in. */
  async forget(): Promise<void> {
    await done(this.#store(DEVICE, "readwrite").delete(DEVICE));
  }

  pins(): Promise<readonly Pin[]> {
    return done<Pin[]>(this.#store(PINS, "readonly").getAll());
  }

  /** Keep `pin` in place of others; all of it or nothing. */
  async trust(pin: Pin, others: readonly Pin[]): Promise<void> {
    const store = this.#store(PINS, "readwrite");
    await Promise.all([...others.map(({ hostId }) => done(store.delete(hostId))), done(store.put(pin))]);
  }

  #store(name: string, mode: IDBTransactionMode): IDBObjectStore {
    return this.#database.transaction(name, mode).objectStore(name);
  }
}

function done<T>(request: IDBRequest<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error ?? new Error("the browser could not read what it keeps"));
  });
}

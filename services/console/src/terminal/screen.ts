/** The terminal on the page: xterm with what surrounds it, as the session sees it and as the page does. */

import { FitAddon } from "@xterm/addon-fit";
import { SearchAddon } from "@xterm/addon-search";
import { UnicodeGraphemesAddon } from "@xterm/addon-unicode-graphemes";
import { WebLinksAddon } from "@xterm/addon-web-links";
import { WebglAddon } from "@xterm/addon-webgl";
import { Terminal } from "@xterm/xterm";

import { type Bytes, utf8 } from "../channel/index.ts";
import type { Screen } from "../device/session_status.ts";
import { cleanPaste, cleanTitle, shownAddress, webAddress } from "./clean.ts";
import { onTheme, theme } from "./themes.ts";

/** Milliseconds in which changes of the window become one change of the terminal. */
const RESIZE_MS = 80;
const SCROLLBACK_LINES = 10_000;

export interface ScreenEvents {
  /** Keys, pasted text and answers of the terminal, for the program. */
  typed(data: Bytes): void;
  resized(): void;
  titled(title: string): void;
  /** A line of the relay or the host. */
  said(text: string): void;
  rang(): void;
  /** The person asks for the search field. */
  search(): void;
  /** The person wants to leave the terminal with the keyboard, whose keys are all the program's. */
  leave(): void;
}

export class TerminalScreen implements Screen {
  /** Where the terminal lives; a page shows it and takes it away again. */
  readonly element = document.createElement("div");
  readonly #terminal: Terminal;
  readonly #fit = new FitAddon();
  readonly #search = new SearchAddon();
  readonly #events: ScreenEvents;
  readonly #ends: (() => void)[] = [];
  #resizing: ReturnType<typeof setTimeout> | undefined;

  constructor(events: ScreenEvents) {
    this.#events = events;
    this.element.className = "terminal-screen";
    this.#terminal = new Terminal({
      allowProposedApi: true, // the table of graphemes wants it
      cursorBlink: true,
      fontFamily: 'ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
      fontSize: 14,
      lineHeight: 1.1, // with 1 the lowest pixels of some fonts, the underscore's, are cut off
      macOptionIsMeta: true,
      minimumContrastRatio: 4.5,
      scrollback: SCROLLBACK_LINES,
      theme: theme(),
      linkHandler: {
        activate: (_event, address) => follow(address),
        // The text of such a link is the program's choice: where it leads is shown.
        hover: (_event, address) => (this.element.title = shownAddress(address)),
        leave: () => (this.element.title = ""),
        allowNonHttpProtocols: false,
      },
    });
  }

  /** Put the terminal into its element, which has to be on the page. */
  open(): void {
    const terminal = this.#terminal;
    terminal.loadAddon(this.#fit);
    terminal.loadAddon(this.#search);
    terminal.loadAddon(new UnicodeGraphemesAddon());
    terminal.loadAddon(new WebLinksAddon((_event, address) => follow(address)));
    terminal.open(this.element);
    this.#accelerate();
    this.#leaveTabOrder();
    this.element.addEventListener("paste", (event) => this.#pasted(event, event.clipboardData), { capture: true });
    this.element.addEventListener("drop", (event) => this.#pasted(event, event.dataTransfer), { capture: true });
    this.element.addEventListener("dragover", (event) => event.preventDefault()); // else the browser opens what is dropped
    terminal.attachCustomKeyEventHandler((event) => this.#key(event));
    terminal.onData((data) => this.#events.typed(utf8(data)));
    terminal.onBinary((data) => this.#events.typed(Uint8Array.from(data, (each) => each.charCodeAt(0))));
    terminal.onTitleChange((title) => this.#events.titled(cleanTitle(title)));
    terminal.onBell(() => this.bell());
    terminal.onResize(() => this.#events.resized());
    this.#ends.push(onTheme(() => (terminal.options.theme = theme())));
    const observer = new ResizeObserver(() => this.#refit());
    observer.observe(this.element);
    this.#ends.push(() => observer.disconnect());
    this.fit();
  }

  readonly draw = (data: Bytes, drawn: () => void): void => this.#terminal.write(data, drawn);

  size(): { columns: number; rows: number } {
    return { columns: this.#terminal.cols, rows: this.#terminal.rows };
  }

  say(text: string): void {
    this.#events.said(cleanTitle(text));
  }

  bell(): void {
    this.#events.rang();
  }

  /** Take the size of the element; nothing while it is not shown. */
  fit(): void {
    if (this.element.offsetParent !== null) this.#fit.fit();
  }

  focus(): void {
    this.#terminal.focus();
  }

  paste(text: string): void {
    this.#terminal.paste(cleanPaste(text));
  }

  get selection(): string {
    return this.#terminal.getSelection();
  }

  find(text: string, backwards: boolean): boolean {
    return backwards ? this.#search.findPrevious(text) : this.#search.findNext(text);
  }

  endSearch(): void {
    this.#search.clearDecorations();
    this.focus();
  }

  /** Rows that a screen reader reads; they take time, so they are there for who wants them. */
  readAloud(on: boolean): void {
    this.#terminal.options.screenReaderMode = on;
  }

  dispose(): void {
    clearTimeout(this.#resizing);
    for (const end of this.#ends) end();
    this.#terminal.dispose();
    this.element.remove();
  }

  /** Tab is the program's key, too: who goes through the page with it would not come out, so it passes the terminal by. */
  #leaveTabOrder(): void {
    const keys = this.#terminal.textarea;
    if (keys === undefined) return;
    keys.tabIndex = -1;
    keys.setAttribute("aria-description", "All keys go to the program. Control Shift E leaves to the tab, Enter comes back.");
  }

  /** Draw with the graphics card where there is one; without, and when it takes itself away, xterm draws elements. */
  #accelerate(): void {
    if (!hasGraphicsCard()) return;
    try {
      const webgl = new WebglAddon();
      webgl.onContextLoss(() => webgl.dispose());
      this.#terminal.loadAddon(webgl);
    } catch {
      // The addon throws what it likes where WebGL 2 is missing; drawing with elements goes on.
    }
  }

  #refit(): void {
    clearTimeout(this.#resizing);
    this.#resizing = setTimeout(() => this.fit(), RESIZE_MS);
  }

  /** xterm brackets a paste but leaves in it what ends the bracket, so nothing pasted or dropped reaches it by itself. */
  #pasted(event: Event, brought: DataTransfer | null): void {
    event.preventDefault();
    event.stopPropagation();
    this.paste(brought?.getData("text/plain") ?? "");
  }

  /** Whether xterm gets the key. Ctrl-Shift-V is left to the browser, which makes a paste of it. */
  #key(event: KeyboardEvent): boolean {
    if (!event.ctrlKey || !event.shiftKey || event.altKey || event.metaKey) return true;
    const act = { KeyC: () => this.#copy(), KeyF: () => this.#events.search(), KeyE: () => this.#events.leave() }[event.code];
    if (act === undefined) return event.code !== "KeyV";
    event.preventDefault();
    if (event.type === "keydown") act();
    return false;
  }

  #copy(): void {
    // A browser may not let the page copy; the person hears that nothing was.
    if (this.#terminal.hasSelection()) navigator.clipboard.writeText(this.selection).catch(() => this.bell());
  }
}

/** Programs that stand in for a graphics card; they say so themselves only in their names. */
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** A browser without a card draws WebGL in software, which is slower than elements and holds the page up. */
function hasGraphicsCard(): boolean {
  const context = document.createElement("canvas").getContext("webgl2", { failIfMajorPerformanceCaveat: true });
  if (context === null) return false;
  const named = context.getExtension("WEBGL_debug_renderer_info");
  const renderer = String(context.getParameter(named?.UNMASKED_RENDERER_WEBGL ?? context.RENDERER));
  context.getExtension("WEBGL_lose_context")?.loseContext();
  return !SOFTWARE.test(renderer);
}

function follow(address: string): void {
  const url = webAddress(address);
  if (url !== null) window.open(url, "_blank", "noopener,noreferrer");
}

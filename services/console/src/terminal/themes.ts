/** The terminal's colours, as the system prefers them. All of them have a contrast of 4.5 and more on their ground. */

import type { ITheme } from "@xterm/xterm";

const DARK: ITheme = {
  background: "#101413",
  foreground: "#dfe5e2",
  cursor: "#6fd3ab",
  cursorAccent: "#101413",
  selectionBackground: "#35544a",
  black: "#6d7774",
  red: "#ff8077",
  green: "#6fd38b",
  yellow: "#e3bf5f",
  blue: "#7fb2ff",
  magenta: "#d99bf0",
  cyan: "#5fcfd6",
  white: "#dfe5e2",
  brightBlack: "#8d9895",
  brightRed: "#ffa39b",
  brightGreen: "#97e6ac",
  brightYellow: "#f2d68a",
  brightBlue: "#a8ccff",
  brightMagenta: "#e9bdf8",
  brightCyan: "#92e3e8",
  brightWhite: "#ffffff",
};

const LIGHT: ITheme = {
  background: "#ffffff",
  foreground: "#1b211f",
  cursor: "#0f6b4f",
  cursorAccent: "#ffffff",
  selectionBackground: "#bfe3d5",
  black: "#1b211f",
  red: "#b3261e",
  green: "#1c6e34",
  yellow: "#7a5600",
  blue: "#1a57b8",
  magenta: "#8a2fa8",
  cyan: "#0b6a73",
  white: "#5d6663",
  brightBlack: "#6a7370",
  brightRed: "#c2372e",
  brightGreen: "#257b3e",
  brightYellow: "#856000",
  brightBlue: "#2b68c9",
  brightMagenta: "#9a40b8",
  brightCyan: "#167682",
  brightWhite: "#2b3330",
};

const dark = matchMedia("(prefers-color-scheme: dark)");

export function theme(): ITheme {
  return dark.matches ? DARK : LIGHT;
}

/** Call `change` when the system prefers the other one; what is returned ends it. */
export function onTheme(change: () => void): () => void {
  dark.addEventListener("change", change);
  return () => dark.removeEventListener("change", change);
}

/** Where the person is, and how they go elsewhere. */

import { Watched } from "../watched.ts";
import { type Route, hashOf, routeOf } from "./route.ts";

export const route = new Watched<Route>(routeOf(location.hash));
addEventListener("hashchange", () => route.set(routeOf(location.hash)));

export function go(to: Route): void {
  location.hash = hashOf(to);
}

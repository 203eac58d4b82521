/** Where a person can be, as the part of the address behind `#`, which no server sees. Pure. */

export const OPERATE = ["nodes", "hosts", "sessions", "unpaired", "audit", "persons"] as const;
export type OperatePage = (typeof OPERATE)[number];

export type Route =
  | { readonly page: "hosts" }
  | { readonly page: "terminals"; readonly sessionId: string | null }
  | { readonly page: "account" }
  | { readonly page: "operate"; readonly part: OperatePage };

/** Whatever is no address of ours leads to the hosts. */
export function routeOf(hash: string): Route {
  const [page, rest = ""] = hash.replace(/^#/, "").split("/");
  switch (page) {
    case "terminals":
      return { page, sessionId: rest === "" ? null : rest };
    case "account":
      return { page };
    case "operate":
      return { page, part: OPERATE.find((each) => each === rest) ?? "nodes" };
    default:
      return { page: "hosts" };
  }
}

export function hashOf(route: Route): string {
  switch (route.page) {
    case "terminals":
      return route.sessionId === null ? "#terminals" : `#terminals/${route.sessionId}`;
    case "operate":
      return `#operate/${route.part}`;
    default:
      return `#${route.page}`;
  }
}

/** The invite that a link brings, `#invite=CODE`; null for none. */
export function inviteOf(hash: string): string | null {
  return /^#invite=([\w-]+)$/.exec(hash)?.[1] ?? null;
}

/** The bar over all pages: where one can go, who is here, and whether what is shown is as it is now. */

import type { JSX } from "preact";

import { useWatched } from "../watched.ts";
import { useHere } from "./here.ts";
import { type Route, hashOf } from "./route.ts";
import { route } from "./whereabouts.ts";

export function TopBar(): JSX.Element {
  const { me, tabs, happenings } = useHere();
  const open = useWatched(tabs.list).length;
  const live = useWatched(happenings.live);
  return (
    <header class="top">
      <button type="button" class="skip" onClick={() => document.getElementById("main")?.focus()}>
        Skip to the page
      </button>
      <span class="brand">bothy</span>
      <nav aria-label="Pages">
        <Link to={{ page: "hosts" }}>Hosts</Link>
        <Link to={{ page: "terminals", sessionId: null }}>
          Terminals{open > 0 && <span class="count">{open}</span>}
        </Link>
        <Link to={{ page: "account" }}>Account</Link>
        {me.is_operator && <Link to={{ page: "operate", part: "nodes" }}>Operate</Link>}
      </nav>
      <span class="who">
        <span class={`dot ${live ? "good" : "warn"}`} />
        <span class="unseen">{live ? "live" : "not live, trying again"}</span>
        <span class="person" title={live ? `${me.device_name}, live` : "The relay does not answer at the moment"}>
          {me.person_name}
        </span>
      </span>
    </header>
  );
}

function Link({ to, children }: { readonly to: Route; readonly children: preact.ComponentChildren }): JSX.Element {
  const here = useWatched(route).page === to.page;
  return (
    <a href={hashOf(to)} aria-current={here ? "page" : undefined}>
      {children}
    </a>
  );
}

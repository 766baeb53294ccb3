/**
 * Shell: the frame around every page. It shows the navigation, who is signed in, and whether the page is live.
 */
import { ActionIcon, Burger, Button, Menu, useComputedColorScheme, useMantineColorScheme } from "@mantine/core";
import { lazy, Suspense, useEffect, useState, type ComponentType, type LazyExoticComponent } from "react";
import { linkTo, usePlace } from "./hash";
import { useLive } from "./live";
import { useLogin } from "./login";
import type { PageProps } from "./page-props";

interface PageEntry {
  title: string;
  Page: LazyExoticComponent<ComponentType<PageProps>>;
  /** True for a page that only admins see. */
  adminOnly?: boolean;
}

const PAGES: Record<string, PageEntry> = {
  fleet: { title: "Fleet", Page: lazy(() => import(/* webpackChunkName: "fleet" */ "./pages/fleet")) },
  library: { title: "Library", Page: lazy(() => import(/* webpackChunkName: "library" */ "./pages/library")) },
  downloads: { title: "Downloads", Page: lazy(() => import(/* webpackChunkName: "downloads" */ "./pages/downloads")) },
  analysis: { title: "Analysis", Page: lazy(() => import(/* webpackChunkName: "analysis" */ "./pages/analysis")) },
  experiments: {
    title: "Experiments",
    Page: lazy(() => import(/* webpackChunkName: "experiments" */ "./pages/experiments")),
  },
  configuration: {
    title: "Configuration",
    Page: lazy(() => import(/* webpackChunkName: "configuration" */ "./pages/configuration")),
  },
  errors: { title: "Errors", Page: lazy(() => import(/* webpackChunkName: "errors" */ "./pages/errors")) },
  users: { title: "Users", Page: lazy(() => import(/* webpackChunkName: "users" */ "./pages/users")), adminOnly: true },
};
const DOWNLOAD = lazy(() => import(/* webpackChunkName: "download" */ "./pages/download"));

export function Shell() {
  const place = usePlace();
  const live = useLive();
  const { admin } = useLogin();
  const [open, setOpen] = useState(false);
  const name = place.page in PAGES ? place.page : "fleet";
  const entry = PAGES[name] as PageEntry;
  const Shown = name === "downloads" && place.rest !== "" ? DOWNLOAD : entry.Page;
  useEffect(() => {
    document.title = `${entry.title} · Origo`;
    setOpen(false);
  }, [entry.title]);
  return (
    <>
      <a
        className="skip"
        href="#main"
        onClick={(event) => {
          event.preventDefault();
          document.getElementById("main")?.focus();
        }}
      >
        Skip to content
      </a>
      <header className="top">
        <a className="brand" href={linkTo("fleet")}>
          <img src="icon.svg" alt="" width="24" height="24" />
          Origo
        </a>
        <Burger
          className="burger"
          opened={open}
          size="sm"
          aria-label="Menu"
          aria-expanded={open}
          onClick={() => setOpen(!open)}
        />
        <nav className="nav" data-open={open} aria-label="Pages">
          {Object.entries(PAGES)
            .filter(([, each]) => admin || !each.adminOnly)
            .map(([key, each]) => (
              <a key={key} href={linkTo(key)} aria-current={key === name ? "page" : undefined}>
                {each.title}
              </a>
            ))}
        </nav>
        <div className="top-right">
          <span
            className="live"
            data-live={live}
            title={live ? "This page shows changes at once" : "The live link is down: this page asks every few seconds"}
          >
            {live ? "live" : "polling"}
          </span>
          <SchemeToggle />
          <Account />
        </div>
      </header>
      <main id="main" tabIndex={-1}>
        <Suspense fallback={null}>
          <Shown live={live} rest={place.rest} />
        </Suspense>
      </main>
    </>
  );
}

function SchemeToggle() {
  const { setColorScheme } = useMantineColorScheme();
  const next = useComputedColorScheme("light") === "light" ? "dark" : "light";
  return (
    <ActionIcon
      variant="default"
      size="lg"
      aria-label={`Switch to ${next}`}
      title={`Switch to ${next}`}
      onClick={() => setColorScheme(next)}
    >
      <svg viewBox="0 0 16 16" width="16" height="16" aria-hidden="true">
        <circle cx="8" cy="8" r="6.5" fill="none" stroke="currentColor" />
        <path d="M8 1.5a6.5 6.5 0 0 1 0 13z" fill="currentColor" />
      </svg>
    </ActionIcon>
  );
}

function Account() {
  const { login, signOut } = useLogin();
  if (login.user === null || !login.loginRequired)
    return (
      <span className="tag" title="Origo runs without login. Everyone who can open this page is an admin.">
        no login
      </span>
    );
  return (
    <Menu position="bottom-end">
      <Menu.Target>
        <Button variant="default" size="compact-md">
          {login.user.name}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>{login.user.role}</Menu.Label>
        <Menu.Item onClick={signOut}>Sign out</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

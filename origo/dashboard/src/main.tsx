/**
 * Main: starts the dashboard. The code of each page is loaded when that page is first opened. Styles come from files
 * only: the security policy of the page forbids style elements.
 */
import "@mantine/core/styles.css";
import "./styles/index.css";
import { Autocomplete, createTheme, MantineProvider, Menu, Modal, Popover, Select, TagsInput } from "@mantine/core";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import type { SyntheticEvent } from "react";
import { createRoot } from "react-dom/client";
import { Fault } from "./api";
import { LoginGate } from "./login";
import { Shell } from "./shell";

/** Nothing that opens is animated. */
const still = { transitionProps: { duration: 0 } };
/**
 * Typing into a searchable list replaces the name of what is chosen and does not add to it. The browser places the
 * caret after a click, so the text is selected later.
 */
const selectAll = ({ currentTarget: input }: SyntheticEvent<HTMLInputElement>): void => {
  if (!input.readOnly) setTimeout(() => input.select());
};
const theme = createTheme({
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Autocomplete: Autocomplete.extend({ defaultProps: { comboboxProps: still } }),
    Menu: Menu.extend({ defaultProps: still }),
    Modal: Modal.extend({ defaultProps: still }),
    Popover: Popover.extend({ defaultProps: still }),
    Select: Select.extend({ defaultProps: { comboboxProps: still, onFocus: selectAll, onClick: selectAll } }),
    TagsInput: TagsInput.extend({ defaultProps: { comboboxProps: still } }),
  },
});
/** When the login has ended, the page asks the person to sign in again. */
const onError = (error: Error): void => {
  if (error instanceof Fault && error.error.kind === "loginRequired")
    void client.invalidateQueries({ queryKey: ["login"] });
};
const client = new QueryClient({
  queryCache: new QueryCache({ onError }),
  mutationCache: new MutationCache({ onError }),
  defaultOptions: {
    queries: {
      retry: (count, error) => count < 2 && !(error instanceof Fault && error.status >= 400 && error.status < 500),
      refetchOnWindowFocus: false,
    },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("the document has no #root");
createRoot(root).render(
  <MantineProvider theme={theme} defaultColorScheme="auto" withCssVariables={false} withGlobalClasses={false}>
    <QueryClientProvider client={client}>
      <LoginGate>
        <Shell />
      </LoginGate>
    </QueryClientProvider>
  </MantineProvider>,
);

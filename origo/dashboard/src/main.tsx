/**
 * Main: the dashboard's entry. One page in one document; each page's code is loaded when it is first opened.
 * Styles come from files alone: the policy that the page is served under allows no style element.
 */
import "@mantine/core/styles.css";
import "./style.css";
import { createTheme, MantineProvider } from "@mantine/core";
import { MutationCache, QueryCache, QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { createRoot } from "react-dom/client";
import { Fault } from "./api";
import { LoginGate } from "./login";
import { Shell } from "./shell";

const theme = createTheme({ cursorType: "pointer", respectReducedMotion: true });
/** Who was signed out meanwhile is asked to sign in. */
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

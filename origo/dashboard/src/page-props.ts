/** What the shell gives to each page. */
export interface PageProps {
  /** True while Origo pushes changes to this page. */
  live: boolean;
  /** The rest of the page's address, after its name. */
  rest: string;
}

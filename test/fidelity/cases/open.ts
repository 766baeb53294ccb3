/**
 * Cases that differ, because a page cannot be given what the browser keeps for itself. docs/use/viewer.md tells who
 * notices. They are left out of `npm test`.
 */
export const OPEN: ReadonlyMap<string, string> = new Map([
  ["heads/cache-api", "no script can give a stored answer an address"],
  ["caches/resource-timing", "no script can add an entry to the browser's list"],
  ["shapes/ranges-of-unknown-length", "a proxy tells the length of a part that the site sends without one"],
  ["xhr/trusted-events", "the browser trusts no event of a script"],
]);

import { withSection } from "./document";

test("a section is added once and replaced from then on, and the rest of the document stays", () => {
  const once = withSection("# Measurements\n\nText.\n", "codec", "npm run a", "first");
  const twice = `${withSection(once, "codec", "npm run a", "second")}\n## More\n`;
  expect(twice).toContain("Text.");
  expect(twice).toContain("second");
  expect(twice).not.toContain("first");
  expect(withSection(twice, "codec", "npm run a", "second")).toBe(twice);
});

test("sections of other names stay as they are", () => {
  const both = withSection(withSection("", "one", "npm run a", "1"), "two", "npm run b", "2");
  expect(withSection(both, "one", "npm run c", "3")).toBe(both.replace("npm run a -->\n\n1", "npm run c -->\n\n3"));
});

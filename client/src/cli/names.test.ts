import { freePath, nameFromHeader, nameFromUrl, partPathOf } from "./names";

describe("names", () => {
  test.each([
    ["http://o/a/film.mp4?x=1#y", "film.mp4"],
    ["http://o/", "index.html"],
    ["http://o/a/", "index.html"],
    ["http://o/%E3%81%82%20b.ts", "\u3042 b.ts"],
    ["http://o/..%2f..%2fetc%2fpasswd", ".._.._etc_passwd"],
    ["http://o/%2e%2e", "index.html"],
    ["http://o/a%00b%1b%5d%0a", "a_b_]_"],
    ["http://o/a%zz", "a%zz"],
    ["http://o/C:%5cx", "C__x"],
    ["http://o/Con.tar.gz", "_Con.tar.gz"],
    ["http://o/com1", "_com1"],
    ["http://o/contact.mp4", "contact.mp4"],
    [`http://o/${"x".repeat(300)}.mp4`, `${"x".repeat(236)}.mp4`],
  ])("names: %s is saved as %s", (url, name) => {
    expect(nameFromUrl(url)).toBe(name);
  });

  test.each([
    ['attachment; filename="film.mp4"', "film.mp4"],
    ["attachment; filename*=UTF-8''%e2%82%ac.mp4; filename=\"x\"", "\u20ac.mp4"],
    ['attachment; filename="../../etc/passwd"', "passwd"],
    ['attachment; filename="..\\\\..\\\\x.exe"', "x.exe"],
    ['attachment; filename=".bashrc"', "bashrc"],
    ['attachment; filename=".."', undefined],
    ['attachment; filename="a\u001b]0;x"', "a_]0;x"],
    [`attachment; filename="${Buffer.from("\u3042.ts").toString("latin1")}"`, "\u3042.ts"],
    ['attachment; filename="\xfc.mp4"', "\u00fc.mp4"],
    ["attachment; filename*=UTF-8''..%2f..%2fpasswd", "passwd"],
    ['attachment; filename="nul"', "_nul"],
    ["attachment", undefined],
    ["nonsense;;;", undefined],
    [undefined, undefined],
  ])("names: Content-Disposition %j names %j", (header, name) => {
    expect(nameFromHeader(header)).toBe(name);
  });

  test("names: a part file has a name of at most 255 bytes with its endings", () => {
    expect(partPathOf("d/f.mp4")).toBe("d/f.mp4.part");
    const long = ["\u00e9".repeat(125), "x".repeat(253), `${"x".repeat(252)}y`].map(partPathOf);
    expect(new Set(long).size).toBe(3);
    for (const name of long) expect(Buffer.byteLength(`${name}.json`)).toBeLessThanOrEqual(255);
  });

  test("names: a name that is taken gets a number", () => {
    expect(freePath("d/f.mp4", (file) => file !== "d/f.2.mp4")).toBe("d/f.2.mp4");
  });
});

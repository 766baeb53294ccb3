import { RequestError, withoutPasswords } from "../errors";
import { jsonLine, printable } from "./terminal";

describe("terminal", () => {
  test("terminal: no control character of a server reaches the terminal", () => {
    expect(printable("a\u001b]0;title\u0007\r\nb\u009b2J\u202ec\u007f\t")).toBe(
      "a\\u{1b}]0;title\\u{7}\\u{d}\nb\\u{9b}2J\\u{202e}c\\u{7f}\\u{9}",
    );
    const value = { message: "\u001b[2J\u009b\u202e\u2028 \u00e9" };
    const line = jsonLine(value);
    expect(JSON.parse(line)).toEqual(value);
    expect(printable(line)).toBe(line);
  });

  test.each([
    ["got http://u:p@h/x", "got http://***@h/x"],
    ["got HTTPS://u@h/x and ftp://a:b@c", "got HTTPS://***@h/x and ftp://***@c"],
    ["http://u:p@ss@h/", "http://***@h/"],
    ["http://h/a@b?c@d", "http://h/a@b?c@d"],
    ["http://h:80/ u@v", "http://h:80/ u@v"],
  ])("terminal: %j is shown as %j", (text, shown) => {
    expect(withoutPasswords(text)).toBe(shown);
  });

  test("terminal: an error about an address does not repeat its password", () => {
    expect(new RequestError("url", "ftp://u:geheim@h/", "http").message).toContain('"ftp://***@h/"');
  });
});

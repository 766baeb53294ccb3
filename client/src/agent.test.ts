import { describeAgent } from "./agent";

test.each([
  [
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36",
    { agent: "chrome/156", os: "linux" },
  ],
  [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) " +
      "Chrome/156.0.0.0 Safari/537.36 Edg/156.0.0.0",
    { agent: "edge/156", os: "windows" },
  ],
  [
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:140.0) Gecko/20100101 Firefox/140.0",
    { agent: "firefox/140", os: "macos" },
  ],
  [
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) " +
      "Version/18.0 Mobile/15E148 Safari/604.1",
    { agent: "safari/18", os: "ios" },
  ],
  [
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Mobile Safari/537.36",
    { agent: "chrome/156", os: "android" },
  ],
  ["something else", {}],
])("%s", (userAgent, expected) => {
  expect(describeAgent(userAgent)).toEqual(expected);
});

/** Sums of a profile by part and function. */
import { partOf, spentOf } from "./profile";

const at = (functionName: string, url = ""): { functionName: string; url: string } => ({ functionName, url });

test.each([
  [at("poll", "file:///x/protocol/dist/receiver.js"), "protocol/receiver"],
  [at("send", "/x/proxy/dist/webtransport.js"), "proxy/webtransport"],
  [at("take", "/x/native-transport/dist/index.js"), "native-transport/index"],
  [at("connect", "/x/client/dist/transports/udp-node.js"), "client/transports/udp-node"],
  [at("update", "node:crypto"), "Node"],
  [at("get", "/x/node_modules/@scope/thing/dist/index.js"), "@scope/thing"],
  [at("(garbage collector)"), "garbage collector"],
  [at("(program)"), "native code outside JavaScript"],
  [at("", "/y/somewhere.js"), "other"],
])("profile: %j is %s", (frame, part) => {
  expect(partOf(frame)).toBe(part);
});

test("profile: time goes to the function that ran; native time goes to its caller, idle time to none", () => {
  const nodes = [
    { id: 1, callFrame: at("(root)"), children: [2, 3, 5] },
    { id: 2, callFrame: at("(idle)") },
    { id: 3, callFrame: at("poll", "/x/protocol/dist/receiver.js"), children: [4] },
    { id: 4, callFrame: at("dispatch") },
    { id: 5, callFrame: at("post", "node:inspector"), children: [6] },
    { id: 6, callFrame: at("dispatch") },
  ];
  const profile = { nodes, samples: [2, 3, 4, 3, 5, 6], timeDeltas: [5000, 1000, 3000, -20, 7000, 7000] };
  expect(spentOf([profile, profile])).toEqual({
    busyMs: 8,
    parts: [
      ["native code called by protocol/receiver", 6],
      ["protocol/receiver", 2],
    ],
    functions: [
      ["native code called by poll, protocol/receiver", 6],
      ["poll, protocol/receiver", 2],
    ],
  });
});

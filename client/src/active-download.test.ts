import { SETTINGS_DEFAULT } from "./settings";
import { ActiveDownload } from "./active-download";
import type { RequestTrace } from "./messages";
import { nodePlatform } from "./node";
import type { Hasher } from "./platform";
import { parseRequest } from "./request";
import { LiveBoard } from "./tally";

test("active download: chunks are no longer traced once the trace has enough packets", () => {
  const request = parseRequest("http://o.example/f", {});
  const platform = nodePlatform();
  const basis = { request, settings: SETTINGS_DEFAULT, configVersion: undefined, experiments: [], traced: true };
  const makeHasher = (): Hasher => ({ update: () => undefined, digest: async () => null, discard: () => undefined });
  const download = new ActiveDownload({
    request,
    platform,
    settings: SETTINGS_DEFAULT,
    makeHasher,
    board: new LiveBoard(),
  });
  download.goBy(basis);
  const packets = Array.from({ length: 40_000 }, (_, ms): RequestTrace["packets"][number] => [ms, 0, 0, "innovative"]);
  expect(download.traced).toBe(true);
  download.addTrace(0, 0, { packets, feedback: [] }, 1);
  expect(download.traced).toBe(true);
  download.addTrace(8, 50_000, { packets, feedback: [] }, 1);
  expect(download.traced).toBe(false);
  expect(download.trace()?.packets).toHaveLength(65_536);
});

/** Runs in the player's page before its own scripts and notes events (events.ts). It does not change the player. */

/** Leaves `videoEvents`; the sample's page makes its hls.js known as `samplePlayer` right before it starts it. */
export const WATCH = `(() => {
  const events = (window.videoEvents = []);
  const note = (what, more = {}) => events.push({ ms: performance.now(), what, ...more });
  for (const what of ["waiting", "playing", "seeking", "seeked", "ended"])
    document.addEventListener(what, () => note(what), true);
  let player;
  Object.defineProperty(window, "samplePlayer", {
    get: () => player,
    set: (made) => {
      player = made;
      note("start");
      document.querySelector("video").requestVideoFrameCallback(() => note("frame"));
      made.on("hlsManifestLoaded", () => note("manifest"));
      made.on("hlsLevelLoaded", () => note("playlist"));
      made.on("hlsFragChanged", (_name, { frag: { sn, level, duration } }) =>
        note("segment", { number: sn, level, seconds: duration }),
      );
    },
  });
})()`;

export const READ_WATCH =
  "({ events: window.videoEvents, nowMs: performance.now(), openedAtMs: performance.timeOrigin })";

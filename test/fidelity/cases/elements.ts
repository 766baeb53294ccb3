/** Plain video elements. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { mediaDir } from "@tributary/lab-stack";
import { bodyOf, give, OPEN_CORS, orLead, refuse, type Exchange, type FidelityCase } from "../kit";

const FILM = readFileSync(path.join(mediaDir, "progressive.mp4"));
const MP4 = { "content-type": "video/mp4", "accept-ranges": "bytes", etag: '"film"', ...OPEN_CORS };

interface VideoOptions {
  url?: string;
  origin?: string;
  toItsEnd?: boolean;
  long?: boolean;
}

const video = (
  name: string,
  answer: (exchange: Exchange) => void,
  { url = "/film/film.mp4", long = false, ...options }: VideoOptions = {},
): FidelityCase => ({
  name: `video/${name}`,
  proof: "led",
  answer: orLead(answer),
  long,
  run: async (tab) => {
    await tab.leadInto(`${tab.away}/film`);
    return tab.video(`${tab.away}${url}`, { seconds: 6, ...options });
  },
});

/** The film with another duration in its movie header (`mvhd`, version 0: the time units per second at 20). */
function withDuration(seconds: number): Buffer {
  const film = Buffer.from(FILM);
  const header = film.indexOf("mvhd");
  film.writeUInt32BE(seconds * film.readUInt32BE(header + 16), header + 20);
  return film;
}

/**
 * Runs a script with a muted `video` in the page whose events are noted. The extension takes it over, unless the case
 * `isLeft` to the browser. `seen` waits, and `started` notes how a call of `play` ended. Positions that the browser
 * chooses and repeated events are not noted.
 */
const taken = (
  name: string,
  script: string,
  { file = FILM, long = false, isLeft = false }: { file?: Buffer; long?: boolean; isLeft?: boolean } = {},
): FidelityCase => ({
  name: `video/${name}`,
  long,
  ...(isLeft ? {} : { proof: "carried" as const }),
  answer: (exchange) =>
    exchange.path === "/noise.mp4" ? give(exchange, bodyOf("noise"), MP4) : give(exchange, file, MP4),
  run: (tab) =>
    tab.run(`(async () => {
      const base = "${tab.away}";
      const url = base + "/film.mp4";
      const video = document.createElement("video");
      const [notes, counts] = [[], {}];
      const note = (what) => notes.push(what);
      for (const type of ${JSON.stringify(COUNTED)})
        video.addEventListener(type, () => { counts[type] = (counts[type] ?? 0) + 1; });
      const seen = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
      const until = (type) => new Promise((resolve, reject) => {
        video.addEventListener(type, resolve, { once: true });
        setTimeout(() => reject(new Error("no " + type)), 6000);
      });
      const started = (playing) => playing.then(() => note("started"), ({ name }) => note(name));
      video.muted = true;
      document.body.append(video);
      try {
        ${script};
      } catch (error) {
        note(String(error));
      }
      const { readyState, duration, paused, ended } = video;
      video.remove();
      return { notes, counts, readyState, duration: Math.round(duration * 1000), paused, ended };
    })()`),
});

const COUNTED = (
  "loadstart durationchange resize loadedmetadata loadeddata play playing pause seeking seeked ended error " +
  "abort emptied ratechange"
).split(" ");

export const ELEMENTS: FidelityCase[] = [
  video("plain", (exchange) => give(exchange, FILM, MP4)),
  video("with-crossorigin", (exchange) => give(exchange, FILM, MP4), { origin: "anonymous", long: true }),
  video("crossorigin-refused", (exchange) => give(exchange, FILM, { "content-type": "video/mp4" }), {
    origin: "anonymous",
  }),
  video("without-cors", (exchange) => give(exchange, FILM, { "content-type": "video/mp4", "accept-ranges": "bytes" }), {
    long: true,
  }),
  video(
    "without-ranges",
    ({ response }) => void response.writeHead(200, { ...MP4, "content-length": FILM.length }).end(FILM),
  ),
  video("not-a-video", (exchange) => give(exchange, bodyOf("noise"), MP4)),
  video("a-page", (exchange) => give(exchange, Buffer.from("<h1>hello</h1>"), { "content-type": "text/html" })),
  video("missing", (exchange) => refuse(exchange, 404)),
  video("forbidden", (exchange) => refuse(exchange, 403)),
  video("empty", (exchange) => give(exchange, Buffer.alloc(0), MP4)),
  video(
    "half",
    ({ response }) => {
      response.writeHead(200, { "content-type": "video/mp4", "content-length": FILM.length });
      response.write(FILM.subarray(0, 200_000), () => setTimeout(() => response.destroy(), 100));
    },
    { toItsEnd: true, long: true },
  ),
  video("plain-type", (exchange) => give(exchange, FILM, { ...MP4, "content-type": "text/plain" }), { long: true }),
  video(
    "redirect",
    (exchange) => {
      if (exchange.path === "/film/go.mp4")
        exchange.response.writeHead(302, { ...OPEN_CORS, location: "/film.mp4" }).end();
      else give(exchange, FILM, MP4);
    },
    { url: "/film/go.mp4", long: true },
  ),
  {
    name: "video/csp-media-self",
    pageHeaders: () => ({ "content-security-policy": "media-src 'self'" }),
    proof: "led",
    answer: orLead((exchange) => give(exchange, FILM, MP4)),
    run: async (tab) => {
      await tab.leadInto(`${tab.away}/film`);
      return tab.video(`${tab.away}/film/film.mp4`, { seconds: 3 });
    },
  },
  {
    name: "video/first-of-its-host",
    answer: (exchange) => give(exchange, FILM, { ...MP4, "cache-control": "no-store" }),
    proof: "carried",
    run: (tab) => tab.video(`${tab.away}/film.mp4`, { seconds: 6 }),
  },
  taken("paused", `video.preload = "metadata"; video.src = url; await seen(3000)`),
  taken(
    "fragment",
    `video.src = url + "#t=2,3"; await until("loadeddata"); note(Math.round(video.currentTime * 10));
     await started(video.play()); await seen(2500); note([video.paused, Math.floor(video.currentTime)])`,
    { isLeft: true },
  ),
  taken(
    "preload-none",
    `video.preload = "none"; video.src = url; await seen(1500); note([video.networkState, video.readyState]);
     await started(video.play()); await seen(1000)`,
  ),
  taken(
    "seek-before-metadata",
    `video.src = url; video.currentTime = 3; note(video.currentTime); await until("loadeddata");
     note([Math.round(video.currentTime * 10), video.seeking])`,
  ),
  taken(
    "canvas",
    `video.src = url; await until("loadeddata"); const canvas = document.createElement("canvas");
     const context = canvas.getContext("2d"); context.drawImage(video, 0, 0);
     try { note(context.getImageData(0, 0, 1, 1).data.length); } catch ({ name }) { note(name); }
     try { note(video.captureStream().getTracks().length); } catch ({ name }) { note(name); }`,
  ),
  taken(
    "canvas-with-crossorigin",
    `video.crossOrigin = "anonymous"; video.src = url; await until("loadeddata");
     const context = document.createElement("canvas").getContext("2d"); context.drawImage(video, 0, 0);
     try { note(context.getImageData(0, 0, 1, 1).data.length); } catch ({ name }) { note(name); }
     try { note(video.captureStream().getTracks().length); } catch ({ name }) { note(name); }`,
  ),
  taken(
    "poster-and-track",
    `video.poster = base + "/poster.png"; const track = document.createElement("track"); track.default = true;
     track.src = "data:text/vtt,WEBVTT%0A%0A00:00.000 --> 00:09.000%0Ahello"; video.append(track);
     video.src = url; await until("loadeddata"); await seen(500);
     note([video.poster.endsWith("/poster.png"), video.textTracks.length, track.readyState,
       video.textTracks[0].activeCues?.length, video.currentSrc === url, video.src === url, video.videoWidth])`,
  ),
  taken("autoplay", `video.autoplay = true; video.src = url; await until("playing"); await seen(1500)`),
  taken(
    "autoplay-paused",
    `video.autoplay = true; video.src = url; await until("playing"); video.pause(); await seen(2500)`,
  ),
  taken(
    "seek-at-metadata",
    `video.preload = "auto"; video.src = url; await until("loadedmetadata");
     video.currentTime = 7; await until("seeked"); note(video.currentTime); await seen(1500)`,
  ),
  taken(
    "seek-to-the-start",
    `video.preload = "auto"; video.src = url; await until("loadeddata");
     for (const to of [7, 0, 4, 0, 9, 0, 6, 0, 3, 0, 8, 0]) {
       const sought = until("seeked"); video.currentTime = to; note(video.seeking); await sought;
       note(video.currentTime); await seen(120);
     }`,
    { long: true },
  ),
  taken(
    "seek-while-paused",
    `video.preload = "auto"; video.src = url; await until("loadeddata");
     for (const to of [3, 12, 5, 20]) {
       video.currentTime = to; await until("seeked"); note(video.currentTime); await seen(700);
     }`,
  ),
  taken("paused-at-once", `video.src = url; await started(video.play()); video.pause(); await seen(2500)`),
  taken(
    "played-and-paused",
    `video.src = url; const playing = video.play(); video.pause(); await started(playing); await seen(2500)`,
  ),
  taken(
    "to-its-end",
    `video.preload = "auto"; video.src = url; await seen(2000); video.currentTime = 22.5; await video.play();
     await until("ended"); note([video.currentTime === video.duration, Math.round(video.duration), video.paused])`,
    { long: true },
  ),
  taken(
    "in-a-loop",
    `video.loop = true; video.src = url; await video.play(); await seen(1500); video.currentTime = 23.2;
     await seen(2500); note([video.currentTime < 3, video.ended, video.paused])`,
    { long: true },
  ),
  taken(
    "another-file",
    `video.src = url; await video.play(); await seen(1500); video.src = url + "?2"; await video.play();
     await seen(1500); note(video.currentSrc)`,
  ),
  taken(
    "then-not-a-video",
    `video.src = url; await video.play(); await seen(1500); video.src = base + "/noise.mp4";
     await started(video.play()); await seen(500); note(video.error.code)`,
  ),
  taken("longer-index", `video.src = url; await video.play(); await seen(1500)`, { file: withDuration(30) }),
  taken("shorter-index", `video.src = url; await video.play(); await seen(1500)`, { file: withDuration(10) }),
  taken(
    "sampled",
    `video.preload = "auto"; video.src = url; let before = 0;
     const all = ["readyState", "duration", "videoWidth", "currentTime"].map(() => 0);
     for (let at = 0; at < 400; at++) {
       const now = [video.readyState > 0, video.duration || 0, video.videoWidth, video.seekable.length].map(Number);
       if (now.some((value, index) => value < all[index])) note(["back", now, all]);
       now.forEach((value, index) => (all[index] = value));
       await new Promise((resolve) => setTimeout(resolve, 5));
     }`,
  ),
  {
    name: "video/sources",
    answer: (exchange) => (exchange.path === "/none.mp4" ? refuse(exchange, 404) : give(exchange, FILM, MP4)),
    run: (tab) =>
      tab.run(`new Promise((resolve) => {
        const video = document.createElement("video");
        video.muted = true;
        video.innerHTML = '<source src="${tab.away}/none.mp4"><source src="${tab.away}/film.mp4" type="video/mp4">';
        const events = [];
        for (const name of ["error", "loadedmetadata", "playing"])
          video.addEventListener(name, (event) => events.push(event.target.localName + " " + name), true);
        document.body.append(video);
        video.play().catch((error) => events.push(error.name));
        setTimeout(() => {
          resolve({ events, src: video.currentSrc, duration: video.duration, hasMoved: video.currentTime > 0 });
          video.remove();
        }, 3000);
      })`),
  },
];

/** Plain video elements. */
import { readFileSync } from "node:fs";
import path from "node:path";
import { mediaDir } from "@tributary/lab-stack";
import { bodyOf, give, OPEN_CORS, refuse, type Exchange, type FidelityCase } from "../kit";

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
  { url = "/film.mp4", long = false, ...options }: VideoOptions = {},
): FidelityCase => ({
  name: `video/${name}`,
  answer,
  long,
  run: async (tab) => {
    await tab.leadIn(tab.away);
    return tab.video(`${tab.away}${url}`, { seconds: 6, ...options });
  },
});

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
      if (exchange.path === "/go.mp4") exchange.response.writeHead(302, { ...OPEN_CORS, location: "/film.mp4" }).end();
      else give(exchange, FILM, MP4);
    },
    { url: "/go.mp4", long: true },
  ),
  {
    name: "video/csp-media-self",
    pageHeaders: () => ({ "content-security-policy": "media-src 'self'" }),
    answer: (exchange) => give(exchange, FILM, MP4),
    run: (tab) => tab.video(`${tab.away}/film.mp4`, { seconds: 3 }),
  },
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

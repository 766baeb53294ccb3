/**
 * Player: the page of a publication. It asks Origo what the publication has and plays it: HLS by hls.js or, where that
 * does not work, by the browser, DASH by dash.js, and a whole file by the browser. If there is nothing that it can
 * play, it says so and lists the files.
 */
import "./player.css";
import { choose, isDash, isHls, type PlayableFile } from "./choice";

const video = document.querySelector<HTMLVideoElement>("#video")!;
const message = document.querySelector<HTMLElement>("#message")!;

interface Answer {
  manifest?: string;
  error?: { message: string };
}

void start().catch((error: Error) => say(error.message));

async function start(): Promise<void> {
  const [, , key = "", name = ""] = location.pathname.split("/");
  document.title = decodeURIComponent(name);
  const response = await fetch(`/v1/publications/${key}/${name}`);
  const answer = (await response.json()) as Answer;
  if (answer.manifest === undefined) throw new Error(answer.error?.message ?? `Origo answered ${response.status}`);
  const files = filesOf(answer.manifest);
  const file = choose(files);
  if (file === undefined) return list(files, "This publication has no video that a page can play.");
  await play(file);
}

/** The browser got the manifest from Origo itself, which has checked the signature. */
function filesOf(manifest: string): PlayableFile[] {
  const [, payload = ""] = manifest.split(".");
  const bytes = Uint8Array.from(atob(payload.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  return (JSON.parse(new TextDecoder().decode(bytes)) as { files: PlayableFile[] }).files;
}

const addressOf = ({ path }: PlayableFile): string => path.split("/").map(encodeURIComponent).join("/");

async function play(file: PlayableFile): Promise<void> {
  const address = addressOf(file);
  const fail = async (at: string, reason: string): Promise<void> =>
    say(`${file.path} cannot be played: ${(await refusalOf(at)) ?? reason}`);
  video.addEventListener("error", () => void fail(address, video.error?.message || "an error"));
  video.hidden = false;
  message.hidden = true;
  if (isDash(file)) return playDash(address, fail);
  const Hls = isHls(file) ? (await import(/* webpackChunkName: "hls" */ "hls.js")).default : undefined;
  if (!Hls?.isSupported()) {
    video.src = address;
    return;
  }
  const hls = new Hls();
  hls.on(Hls.Events.ERROR, (_event, { fatal, details, frag, url }) => {
    if (fatal) void fail(frag?.url ?? url ?? address, details);
  });
  hls.loadSource(address);
  hls.attachMedia(video);
}

/** Where it cannot work, dash.js reports that as an error. */
async function playDash(address: string, fail: (at: string, reason: string) => Promise<void>): Promise<void> {
  const { MediaPlayer } = await import(/* webpackChunkName: "dash" */ "dashjs");
  const player = MediaPlayer().create();
  player.on(MediaPlayer.events.ERROR, ({ error }) => {
    void fail(address, typeof error === "string" ? error : error.message);
  });
  player.initialize(video, new URL(address, location.href).href, false);
}

/** Why Origo or a proxy does not give the file; undefined if it does. Players are not told. */
async function refusalOf(address: string): Promise<string | undefined> {
  const response = await fetch(address, { headers: { range: "bytes=0-0" } }).catch(() => undefined);
  if (response === undefined) return "Origo or its proxy does not answer";
  const answer = response.ok ? undefined : ((await response.json().catch(() => undefined)) as Answer | undefined);
  return answer?.error?.message;
}

function say(text: string): void {
  video.hidden = true;
  message.hidden = false;
  message.textContent = text;
}

/** Each file once, in this order. */
function list(files: readonly PlayableFile[], why: string): void {
  const title = document.createElement("h1");
  title.textContent = document.title;
  const items = document.createElement("ul");
  const reason = document.createElement("p");
  reason.textContent = why;
  for (const file of new Set(files)) {
    const link = document.createElement("a");
    link.href = addressOf(file);
    link.textContent = file.path;
    const item = document.createElement("li");
    item.append(link);
    items.append(item);
  }
  const nav = document.createElement("nav");
  nav.append(title, reason, items);
  message.replaceWith(nav);
}

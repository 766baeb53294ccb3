/** Opens a video: loads its playlist and tells which pictures, sounds and subtitles there are. */
import { parseHls, type HlsRendition, type Media } from "./hls";
import { loadPlaylist, shown, type Loader, type Playlist } from "./load";
import { VideoError, type Presentation, type Rendition, type SegmentList } from "./presentation";
import { openDash } from "./open-dash";
import { formatOfContent } from "./recognise";

export async function openVideo(loader: Loader, url: string): Promise<Presentation> {
  const playlist = await loadPlaylist(loader, url);
  const format = formatOfContent(playlist.text);
  if (format === "hls") return openHls(loader, url, playlist);
  if (format === "dash") return openDash(loader, playlist);
  throw new VideoError(`${shown(url)} is no playlist: it begins with ${JSON.stringify(playlist.text.slice(0, 40))}.`);
}

function openHls(loader: Loader, url: string, playlist: Playlist): Presentation {
  const parsed = parseHls(playlist.text, playlist.url);
  if (parsed.kind === "media") return presentationOf(onlyPicture(loader, url, parsed));
  const { definitions } = parsed;
  const open = ({ url, ...rendition }: HlsRendition): Rendition => ({
    ...rendition,
    ...(url === undefined ? {} : { load: () => loadMedia(loader, url, definitions) }),
  });
  return {
    pictures: parsed.pictures.map(open),
    sounds: parsed.sounds.map(open),
    subtitles: parsed.subtitles.map(open),
  };
}

function presentationOf(picture: Rendition): Presentation {
  return { pictures: [picture], sounds: [], subtitles: [] };
}

/** A media playlist without a master playlist. The first reading uses the playlist that is there. */
function onlyPicture(loader: Loader, url: string, first: Media): Rendition {
  let unread: Media | undefined = first;
  const load = async (): Promise<SegmentList> => {
    const list = unread ?? (await loadMedia(loader, url, {}));
    unread = undefined;
    return list;
  };
  return { kind: "video", label: "the only quality", bandwidth: 0, isDefault: true, isForced: false, load };
}

async function loadMedia(loader: Loader, url: string, definitions: Record<string, string>): Promise<SegmentList> {
  const playlist = await loadPlaylist(loader, url);
  if (formatOfContent(playlist.text) !== "hls") throw new VideoError(`${shown(url)} is no HLS playlist.`);
  const parsed = parseHls(playlist.text, playlist.url, definitions);
  if (parsed.kind !== "media") throw new VideoError(`${shown(url)} is a master playlist where segments should be.`);
  return parsed;
}

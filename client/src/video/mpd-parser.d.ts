/** The part of mpd-parser that dash.ts uses. The package has no types. */
declare module "mpd-parser" {
  interface MpdElement {
    getAttribute(name: string): string | null;
    setAttribute(name: string, value: string): void;
    getElementsByTagName(name: string): ArrayLike<MpdElement>;
  }

  interface MpdAttributes {
    id?: string;
    type: "static" | "dynamic";
    mimeType?: string;
    contentType?: string;
    codecs?: string;
    bandwidth?: number;
    width?: number;
    height?: number;
    lang?: string;
    label?: string;
    role?: { value?: string };
    baseUrl: string;
    periodStart: number;
    periodDuration?: number;
    sourceDuration: number;
    minimumUpdatePeriod?: number;
    timeShiftBufferDepth?: number;
    [other: string]: unknown;
  }

  interface MpdTemplate {
    startNumber?: number;
    endNumber?: number | string;
    timescale?: number;
    presentationTimeOffset?: number;
  }

  interface RepresentationInfo {
    attributes: MpdAttributes;
    segmentInfo: {
      template?: MpdTemplate;
      list?: MpdTemplate;
      base?: object;
      segmentTimeline?: { d: number; t?: number; r?: number }[];
    };
  }

  interface MpdPiece {
    uri: string;
    resolvedUri: string;
    byterange?: { offset: number | bigint; length: number };
  }

  interface MpdPlaylist {
    attributes: MpdAttributes;
    segments?: (MpdPiece & { duration: number; presentationTime: number; map?: MpdPiece })[];
    sidx?: MpdPiece;
  }

  export function inheritAttributes(
    mpd: MpdElement,
    options: { manifestUri: string; NOW: number; clientOffset: number },
  ): { locations?: string[]; representationInfo: RepresentationInfo[] };
  export function toPlaylists(representations: RepresentationInfo[]): MpdPlaylist[];
}

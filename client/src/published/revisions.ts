/**
 * Which revisions of publications a client has seen, so that nobody can offer it an older one. Origo serves the
 * manifests, and an old one has a true signature, too.
 */
import { putLast } from "../memory";

/** So many publications are remembered; the ones that were seen longest ago go first. */
export const REVISIONS_MAX = 1024;

export interface SeenRevisions {
  /** For a person: where to forget a revision. Undefined: it is forgotten when the client ends. */
  readonly file?: string;
  /** The highest revision that was seen, or 0. Does not reject. */
  highest(publication: string): Promise<number>;
  /** Does not reject. */
  note(publication: string, revision: number): Promise<void>;
}

export class RevisionsInMemory implements SeenRevisions {
  readonly #seen = new Map<string, number>();

  highest(publication: string): Promise<number> {
    return Promise.resolve(this.#seen.get(publication) ?? 0);
  }

  note(publication: string, revision: number): Promise<void> {
    putLast(this.#seen, publication, revision, REVISIONS_MAX);
    return Promise.resolve();
  }
}

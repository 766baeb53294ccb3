/**
 * Has objects with that prototype read and set these names as the browser's objects do: through the prototype. An
 * object's own property of the name is its value.
 */
export function addAccessors(prototype: object, names: readonly string[]): void {
  for (const name of names)
    Object.defineProperty(prototype, name, {
      configurable: true,
      get(this: object) {
        return Object.getOwnPropertyDescriptor(this, name)?.value as unknown;
      },
      set(this: object, value: unknown) {
        Object.defineProperty(this, name, { value, writable: true, enumerable: true, configurable: true });
      },
    });
}

/** Of media elements, what a class for tests may keep as fields. */
export const MEDIA_FIELDS = [
  ...["readyState", "networkState", "seeking", "buffered", "seekable", "played", "currentTime", "duration"],
  ...[
    "playbackRate",
    "paused",
    "autoplay",
    "preload",
    "ended",
    "error",
    "crossOrigin",
    "srcObject",
    "videoWidth",
    "videoHeight",
  ],
];

/** Sets `key` as the newest entry and removes the oldest if there are more than `max`. */
export function keepLatest<Key, Value>(map: Map<Key, Value>, key: Key, value: Value, max: number): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > max && oldest.done === false) map.delete(oldest.value);
}

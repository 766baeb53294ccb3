/** Sets `key` as the newest entry and removes the oldest if there are more than `max`. */
export function keepLatest<Value>(map: Map<string, Value>, key: string, value: Value, max: number): void {
  map.delete(key);
  map.set(key, value);
  const oldest = map.keys().next();
  if (map.size > max && oldest.done === false) map.delete(oldest.value);
}

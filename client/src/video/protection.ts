/** The names of the systems that encrypt video. A message names the system, because nobody can look up its number. */

const SYSTEMS: Record<string, string> = {
  "edef8ba9-79d6-4ace-a3c8-27dcd51d21ed": "Widevine",
  "9a04f079-9840-4286-ab92-e65be0885f95": "PlayReady",
  "94ce86fb-07ff-4f43-adb8-93d2fa968ca2": "FairPlay",
  "e2719d58-a985-b3c9-781a-b030af78d30e": "ClearKey",
  "1077efec-c0b2-4d02-ace3-3c1e52e2fb4b": "ClearKey",
  "f239e769-efa3-4850-9c16-a903c6932efb": "Adobe Primetime",
  "5e629af5-38da-4063-8977-97ffbd9902d4": "Marlin",
  "adb41c24-2dbf-4a6d-958b-4457c0d27b95": "Nagra",
  "3d5e6d35-9b9a-41e8-b843-dd3c6e72c42c": "ChinaDRM",
  "80a6be7e-1448-4c37-9e70-d5aebe04c8d2": "Irdeto",
  "9a27dd82-fde2-4725-8cbc-4234aa06ec09": "Verimatrix",
};

const KEY_FORMATS: Record<string, string> = {
  "com.apple.streamingkeydelivery": "FairPlay",
  "com.microsoft.playready": "PlayReady",
  "com.widevine": "Widevine",
  "com.widevine.alpha": "Widevine",
  "org.w3.clearkey": "ClearKey",
  identity: "",
};

/** HLS: the method and the format of a key tag. */
export function systemOfKeyFormat(method: string, format: string): string {
  const name = KEY_FORMATS[format.toLowerCase()] ?? systemOfScheme(format);
  return name === "" ? method : `${name} (${method})`;
}

/** DASH: the scheme of a ContentProtection element. `value` is the scheme's own word, such as `cenc`. */
export function systemOfScheme(scheme: string, value = ""): string {
  const known = SYSTEMS[scheme.toLowerCase().replace(/^urn:uuid:/, "")];
  if (known !== undefined) return known;
  return /^urn:mpeg:dash:mp4protection/i.test(scheme) ? `Common Encryption (${value || "cenc"})` : scheme;
}

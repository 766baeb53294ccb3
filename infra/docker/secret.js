/**
 * Fills ORIGO_SECRET from the file that ORIGO_SECRET_FILE names. The images' entry points preload it (`node
 * --require`). With ORIGO_SECRET_CREATE=1 it makes a missing file with a random secret. A set ORIGO_SECRET wins. The
 * services know only ORIGO_SECRET.
 */
"use strict";

const { randomBytes } = require("node:crypto");
const { existsSync, linkSync, readFileSync, rmSync, writeFileSync } = require("node:fs");

/** Writes a draft first and links it to the file, so that nobody reads half a secret. */
function createOnce(file) {
  if (existsSync(file)) return;
  const draft = `${file}.${process.pid}`;
  // A start that was killed may have left a draft, and its mode forbids writing to it.
  rmSync(draft, { force: true });
  try {
    writeFileSync(draft, randomBytes(32).toString("hex"), { mode: 0o400 });
    linkSync(draft, file);
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  } finally {
    rmSync(draft, { force: true });
  }
}

const file = process.env.ORIGO_SECRET_FILE;
if (file && !process.env.ORIGO_SECRET) {
  try {
    if (process.env.ORIGO_SECRET_CREATE === "1") createOnce(file);
    process.env.ORIGO_SECRET = readFileSync(file, "utf8").trim();
  } catch (error) {
    console.error(`ORIGO_SECRET_FILE=${file}: ${error.message}`);
    process.exit(2);
  }
}

/**
 * Preloaded (`node --require`) by the images' entry points: fills ORIGO_SECRET from the file that ORIGO_SECRET_FILE
 * names, and makes that file, with a random secret, when ORIGO_SECRET_CREATE=1 and it is not there yet. An ORIGO_SECRET
 * that is already set wins. Not part of the services: they know only ORIGO_SECRET.
 */
"use strict";

const { randomBytes } = require("node:crypto");
const { existsSync, linkSync, readFileSync, rmSync, writeFileSync } = require("node:fs");

/** Writes the whole secret beside the file first, so that nobody ever reads half of one. */
function createOnce(file) {
  if (existsSync(file)) return;
  const draft = `${file}.${process.pid}`;
  // Of a start that was killed here; a process may not write into a file of this mode again.
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

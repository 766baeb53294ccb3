/**
 * A webpack loader that converts the world's land from TopoJSON (world-atlas) to GeoJSON in tenths of a degree. It runs
 * at build time, so the page carries neither the converter nor more digits than the map shows. Antarctica is left out.
 */
const { feature } = require("topojson-client");

const LATITUDE_MIN = -60;

/** The map begins and ends in the Bering Strait. No land but Antarctica crosses this line, so no ring is cut. */
const LONGITUDE_MIN = -168.5;

module.exports = function landLoader(source) {
  const topology = JSON.parse(source);
  const { features } = feature(topology, topology.objects.land);
  const coordinates = features
    .flatMap(({ geometry }) => (geometry.type === "Polygon" ? [geometry.coordinates] : geometry.coordinates))
    .filter(([outer]) => outer.some(([, latitude]) => latitude > LATITUDE_MIN))
    .map((rings) =>
      rings.map((ring) =>
        ring.map(([longitude, latitude]) =>
          [longitude < LONGITUDE_MIN ? longitude + 360 : longitude, latitude].map(
            (degrees) => Math.round(degrees * 10) / 10,
          ),
        ),
      ),
    );
  return JSON.stringify({
    type: "FeatureCollection",
    features: [{ type: "Feature", properties: { name: "land" }, geometry: { type: "MultiPolygon", coordinates } }],
  });
};

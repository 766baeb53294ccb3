/**
 * webpack loader: the world's land from TopoJSON (world-atlas) to GeoJSON in tenths of a degree, at build time, so that the page
 * carries neither the converter nor more digits than the map shows. Antarctica, where no proxy is, is left out.
 */
const { feature } = require("topojson-client");

const LATITUDE_MIN = -60;

/** A ring that crosses the 180th meridian goes on beyond it, instead of all the way back across the map. */
function unwrapped(ring) {
  let before = ring[0][0];
  return ring.map(([longitude, latitude]) => {
    before = longitude + 360 * Math.round((before - longitude) / 360);
    return [before, latitude];
  });
}

module.exports = function landLoader(source) {
  const topology = JSON.parse(source);
  const { features } = feature(topology, topology.objects.land);
  const coordinates = features.flatMap(({ geometry }) => (geometry.type === "Polygon" ? [geometry.coordinates] : geometry.coordinates))
    .filter(([outer]) => outer.some(([, latitude]) => latitude > LATITUDE_MIN))
    .map((rings) => rings.map((ring) => unwrapped(ring).map((point) => point.map((degrees) => Math.round(degrees * 10) / 10))));
  return JSON.stringify({
    type: "FeatureCollection",
    features: [{ type: "Feature", properties: { name: "land" }, geometry: { type: "MultiPolygon", coordinates } }],
  });
};

/**
 * webpack loader: the world's land from TopoJSON (world-atlas) to GeoJSON in tenths of a degree, at build time, so that the page
 * carries neither the converter nor more digits than the map shows. Antarctica, where no proxy is, is left out.
 */
const { feature } = require("topojson-client");

const LATITUDE_MIN = -60;

/** The map reaches from here once around the earth. */
const LONGITUDE_MIN = -170;

/** A ring that crosses the 180th meridian goes on beyond it, instead of all the way back across the map; as a whole it is moved by full circles to where the map is. */
function unwrapped(ring) {
  let before = ring[0][0];
  const whole = ring.map(([longitude, latitude]) => {
    before = longitude + 360 * Math.round((before - longitude) / 360);
    return [before, latitude];
  });
  const longitudes = whole.map(([longitude]) => longitude);
  const middle = (Math.min(...longitudes) + Math.max(...longitudes)) / 2;
  const circles = Math.floor((middle - LONGITUDE_MIN) / 360);
  return whole.map(([longitude, latitude]) => [longitude - 360 * circles, latitude]);
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

/** `tributary gateway`: serves any player over the proxies. */
export { GATEWAY_PORT_DEFAULT, GatewayError, startGateway, type Gateway, type GatewayOptions } from "./gateway";

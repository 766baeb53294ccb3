/** The engine behind a message port: makes the codec, keeps the clock and the one timer. Knows no environment. */
import { instantiateCodec } from "@tributary/wasm-codec";
import { Engine } from "./engine";
import type { FromEngine, ToEngine } from "./messages";

export interface Port {
  post(message: FromEngine, transfer: ArrayBuffer[]): void;
}

/** Returns the handler for what the main thread posts. Messages that come before the codec is made wait for it. */
export function serveEngine(port: Port): (message: ToEngine) => void {
  let engine: Engine | undefined;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const waiting: ToEngine[] = [];

  const arm = (current: Engine): void => {
    clearTimeout(timer);
    const at = current.pollTimeout();
    if (at === undefined) return;
    timer = setTimeout(() => {
      current.handleTimeout(performance.now());
      arm(current);
    }, Math.max(1, at - performance.now()));
  };
  const handle = (current: Engine, message: ToEngine): void => {
    current.handle(message, performance.now());
    arm(current);
  };
  const initialise = (wasm: ArrayBuffer): void => {
    try {
      const codec = instantiateCodec(wasm);
      const made = new Engine(codec, port.post);
      port.post({ type: "inited", engine: codec.engine }, []);
      engine = made;
      for (const message of waiting.splice(0)) handle(made, message);
    } catch (error) {
      port.post({ type: "initFailed", message: error instanceof Error ? error.message : String(error) }, []);
    }
  };

  return (message) => {
    if (message.type === "init") initialise(message.wasm);
    else if (engine) handle(engine, message);
    else waiting.push(message);
  };
}

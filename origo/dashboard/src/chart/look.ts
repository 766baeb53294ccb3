/**
 * Look: the colours of charts, light and dark. People with any common colour blindness can tell the first seven series
 * colours apart (after Okabe and Ito, adjusted for contrast).
 */
import { useComputedColorScheme } from "@mantine/core";

export interface Look {
  text: string;
  muted: string;
  line: string;
  surface: string;
  land: string;
  series: readonly string[];
  packet: Readonly<Record<"innovative" | "duplicate" | "late" | "rejected", string>>;
}

const LIGHT: Look = {
  text: "#1c2530",
  muted: "#55606e",
  line: "#dfe4ea",
  surface: "#ffffff",
  land: "#d5dde6",
  series: ["#0b62b8", "#d55e00", "#00845f", "#a8447f", "#8a6d00", "#3d8fc7", "#6b4fc9", "#5b6672"],
  packet: { innovative: "#0b62b8", duplicate: "#e07b00", late: "#8b95a1", rejected: "#c92a2a" },
};

const DARK: Look = {
  text: "#e6eaf0",
  muted: "#a3aebb",
  line: "#343c47",
  surface: "#1b2027",
  land: "#39434f",
  series: ["#56a8f5", "#ff9147", "#2fc795", "#e58bc2", "#e3c04b", "#8fd0ff", "#b09cff", "#a3aebb"],
  packet: { innovative: "#56a8f5", duplicate: "#ffa94d", late: "#7c8794", rejected: "#ff6b6b" },
};

export function useLook(): Look {
  return useComputedColorScheme("light") === "dark" ? DARK : LIGHT;
}

export const colourAt = (look: Look, index: number): string => look.series[index % look.series.length] ?? look.text;

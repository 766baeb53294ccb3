/**
 * What the authors of CodedBulk measured (Tseng et al., NSDI 2021, Figs 8 to 10, from their repository), in Mbit/s over
 * lines of 200 Mbit/s: the sum over the transfers of each one's throughput, as a mean of five draws.
 */
export interface Published {
  readonly transfers: number;
  readonly destinations: number;
  /** Interactive traffic over the capacity of the lines. */
  readonly load: number;
  readonly single: number;
  readonly multi: number;
  readonly steiner: number;
  readonly stored: number;
  readonly coded: number;
}

export const TOPOLOGY_NAMES = ["B4", "Internet2"] as const;
export type TopologyName = (typeof TOPOLOGY_NAMES)[number];
/** Figure 8 varies the load, figure 9 the transfers, and figure 10 the destinations of each transfer. */
export const FIGURES = [8, 9, 10] as const;
export type Figure = (typeof FIGURES)[number];

const row = (
  transfers: number,
  destinations: number,
  load: number,
  ...[single, multi, steiner, stored, coded]: [number, number, number, number, number]
): Published => ({ transfers, destinations, load, single, multi, steiner, stored, coded });

/** Columns: transfers, destinations, load, single path, multi-path, Steiner, Steiner with stores, coded. */
export const PUBLISHED: Readonly<Record<TopologyName, Readonly<Record<Figure, readonly Published[]>>>> = {
  B4: {
    8: [
      row(6, 3, 0.05, 319.9, 412.4, 408.3, 422.8, 648.0),
      row(6, 3, 0.1, 290.2, 380.0, 393.3, 405.5, 620.2),
      row(6, 3, 0.15, 276.2, 372.6, 346.7, 363.4, 536.2),
      row(6, 3, 0.2, 229.1, 329.8, 310.8, 321.8, 500.9),
    ],
    9: [
      row(1, 3, 0.1, 60.7, 114.2, 98.0, 98.7, 241.3),
      row(2, 3, 0.1, 128.3, 185.0, 180.1, 179.0, 319.2),
      row(3, 3, 0.1, 195.6, 309.1, 280.8, 277.9, 436.7),
      row(4, 3, 0.1, 221.6, 311.6, 289.1, 282.0, 516.4),
      row(5, 3, 0.1, 341.3, 444.9, 366.3, 407.5, 659.9),
      row(6, 3, 0.1, 290.2, 380.0, 393.3, 405.5, 620.2),
      row(7, 3, 0.1, 380.2, 482.7, 478.3, 507.8, 708.9),
      row(8, 3, 0.1, 364.1, 475.4, 484.0, 493.2, 691.6),
      row(9, 3, 0.1, 362.7, 470.1, 551.3, 561.9, 753.2),
      row(10, 3, 0.1, 390.2, 500.4, 548.1, 553.7, 719.3),
      row(11, 3, 0.1, 424.7, 510.7, 596.7, 615.1, 738.7),
      row(12, 3, 0.1, 380.5, 466.2, 567.2, 570.0, 715.7),
      row(13, 3, 0.1, 430.3, 540.4, 576.4, 600.7, 708.8),
    ],
    10: [
      row(6, 2, 0.1, 412.9, 560.1, 459.8, 446.8, 761.6),
      row(6, 3, 0.1, 290.2, 380.0, 393.3, 405.5, 620.2),
      row(6, 4, 0.1, 189.6, 271.0, 276.0, 319.0, 471.5),
      row(6, 5, 0.1, 187.4, 213.5, 275.1, 309.3, 452.5),
      row(6, 6, 0.1, 152.9, 167.0, 294.2, 317.1, 411.1),
      row(6, 7, 0.1, 122.2, 161.7, 276.6, 306.7, 388.8),
      row(6, 8, 0.1, 103.3, 131.3, 264.9, 293.9, 354.0),
      row(6, 9, 0.1, 74.1, 119.3, 225.1, 285.9, 316.0),
      row(6, 10, 0.1, 80.5, 111.8, 222.8, 274.7, 272.4),
      row(6, 11, 0.1, 71.7, 81.7, 211.6, 267.8, 240.4),
      row(6, 12, 0.1, 74.1, 86.8, 200.5, 254.2, 195.3),
    ],
  },
  Internet2: {
    8: [
      row(6, 3, 0.05, 324.2, 404.4, 498.5, 515.1, 653.7),
      row(6, 3, 0.1, 309.0, 383.0, 493.9, 487.4, 616.2),
      row(6, 3, 0.15, 296.7, 352.2, 448.0, 450.1, 560.1),
      row(6, 3, 0.2, 229.8, 301.6, 339.6, 347.6, 483.6),
    ],
    9: [
      row(1, 3, 0.1, 80.0, 115.4, 163.3, 155.8, 320.9),
      row(2, 3, 0.1, 114.5, 176.0, 229.4, 225.4, 337.4),
      row(3, 3, 0.1, 236.2, 272.3, 356.6, 347.0, 464.0),
      row(4, 3, 0.1, 287.7, 322.6, 396.3, 399.6, 473.0),
      row(5, 3, 0.1, 296.6, 364.8, 409.8, 421.9, 550.7),
      row(6, 3, 0.1, 309.0, 383.0, 493.9, 487.4, 616.2),
      row(7, 3, 0.1, 373.4, 421.2, 526.3, 529.1, 663.7),
      row(8, 3, 0.1, 387.7, 428.8, 501.1, 508.7, 622.7),
      row(9, 3, 0.1, 355.7, 397.2, 523.4, 521.7, 646.7),
    ],
    10: [
      row(6, 2, 0.1, 383.6, 489.1, 518.2, 499.3, 686.7),
      row(6, 3, 0.1, 309.0, 383.0, 493.9, 487.4, 616.2),
      row(6, 4, 0.1, 245.8, 274.9, 402.4, 403.9, 525.9),
      row(6, 5, 0.1, 208.5, 224.4, 363.9, 389.1, 461.2),
      row(6, 6, 0.1, 172.7, 193.8, 343.1, 375.2, 427.2),
      row(6, 7, 0.1, 154.8, 161.0, 348.4, 380.2, 403.3),
      row(6, 8, 0.1, 128.8, 140.0, 306.2, 348.5, 390.0),
    ],
  },
};

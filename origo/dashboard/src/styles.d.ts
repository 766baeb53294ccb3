/** Lets TypeScript accept imports of style sheets, which webpack collects in dashboard.css. */
declare module "*.css";

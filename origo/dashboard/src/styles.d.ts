/** Style sheets are imported for their effect alone; webpack takes them out into dashboard.css. */
declare module "*.css";

import { launch, extensionId } from "./browser.mjs";
import { startOrigin } from "./server.mjs";
const log=[]; const s = await startOrigin(0, log); const home=`http://127.0.0.1:${s.address().port}`;
  const b = await launch("/work/main/extension/dist/transparency"); 
  const p = await b.newPage(); 
  await p.goto(home+"/page.html"); log.length=0;
  for (const u of ["/media.mp4?acao=*&carry=dies:1000000","/media.mp4?acao=*&carry=dead","/media.mp4?acao=*&carry=dies:1000000","/media.mp4?acao=*"]) {
  const r = await p.evaluate(async (u)=>{ const r=await fetch(u).catch(String); return (await r.arrayBuffer?.().catch(e=>String(e)))?.byteLength}, home+u);
  console.log(u, r, log.splice(0)); }
  const q = await b.newPage(); await q.goto(`chrome-extension://${await extensionId(b)}/popup.html`); await new Promise(r=>setTimeout(r,1000));
  console.log(await q.evaluate(()=>document.body.innerText));
  await b.close();
s.close();

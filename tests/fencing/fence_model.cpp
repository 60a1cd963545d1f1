// Explicit-state search of the fencing protocol (docs/decisions, "a GPU has one holder, also when the network is cut").
// It prints one line per configuration; tests/fencing/test_model.py runs them.
//   g++ -O2 -std=c++17 -o fence_model fence_model.cpp && ./fence_model            all;   ./fence_model H2   those whose name begins so
// Abstractions, each of which only adds behaviours:
//  * Time is in ticks of the slowest node clock allowed; a worker whose step is healthy dies at most one tick after its
//    deadline, one tick later if only the agent can kill it. Placement's clock is the fastest allowed: T is already in ticks.
//    A slower placement or a faster node is covered: "give away" may happen at any later time, a worker may end at any time.
//  * The network is asynchronous: any message may be late for ever, repeated, or never come. This covers cuts in each direction,
//    frozen and dead executor services, zombie executors (any order that any accepted ledger prefix ever gave may arrive at any
//    time), a frozen agent (it does not act), zombie placements (an offered local input stays on offer for ever).
//  * The placement ledger is its accepted prefix: decisions are atomic (ledger.md), what they are based on is not.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <map>
#include <ctime>
#include <cstdint>
#include <functional>
using namespace std; typedef uint8_t u8; typedef int8_t i8; typedef uint64_t u64;
enum { NONE, SPAWN, LIVE, TERM, STUCK, DEAD };                 // a step on a machine: not there, forked, worker runs, in grace, in D state, gone
enum { FROZEN=1, TOMB=2, REP=4, DOUBT=8, OVER=16 };
const int K=3;                                                // attempts of the one job; ledger seq of Placed(k)=2k, of Stop(k)=2k+1
struct Hb{u8 st,age;}; struct Step{u8 st,left,fl;};
struct Mach{u8 up,gen,left,susp,dead,fresh,ta,appl;Hb hb[2];Step s[K];};   // appl = highest applied ledger seq + 1
struct Al{u8 inc,st;};                                        // allocation of attempt k on node n: 1 held, 2 released
struct St{Mach m[2];u8 joined[2],lost[2],op[2],use[2];Al al[K][2];u8 att,ph,regs,regbad,sil,silo,tset,tret,rep[K];
  u8 c[2][2],un[2][2],bc[2],bun[2],na[2];u8 bdup,bcrash,bfrz,bscr,bsus,bop,btail,bprest,bstuck,bdie;};
enum Rule:u64{ SEND=1,NORES=2,FIRST=4,STEPCHK=8,ORDINC=16,APPL=32,TOMBR=64,REPDEAD=128,REGDEAD=256,GEN=512,MACH=1024,VERIFY=2048,
  DURABLE=4096,RESUME=8192,OPWAIT=16384,GANG=32768,BOOT=65536,BACKUP=1<<17,PDEATH=1<<18,DEXCL=1<<19,TERMS=1<<20,MONO=1<<21,SILINC=1<<22,
  EXECREP=1<<23,GRACE=1<<24,STEPNORES=1<<25,MARGIN=1<<26,RESET=1<<27,STEPDL=1<<28,UNIQ=1<<29,RETIRE=1<<30,RECHECK=1ull<<31 };
struct Cfg{const char*name;u64 rm=0;int L=3,T=5,G=1,NW=1,NH=1,GMAX=2,AMAX=K;bool clone=false,terms=false,heal=false,two=false,both=false;
  int crash=0,frz=0,scr=0,sus=0,op=0,tail=0,prest=0,stuck=0,die=0;int L2=1;bool raise=false,newer=false;int dup=0;long lim=14000000;bool onlyS1=false;};
static Cfg C; static bool on(u64 r){return !(C.rm&r);}
static int N(){return C.clone?1:2;} static int nodeof(int m){return C.clone?0:m;}
static u8 inc(const St&s,int m){return s.m[m].gen*2+m;}
static int LL(const Mach&m){return m.ta?C.L2:C.L;}
static int T(const St&s,int n){int t=C.T;if(C.raise)return s.tset?C.L2+2:C.L+2;if(C.terms&&n==0&&(s.tret||(s.tset&&!on(TERMS))))t=C.L2+2;return t;}
static bool alive(const Step&x){return x.st==LIVE||x.st==TERM;}
static bool some(const Mach&m,bool spawn){for(auto&x:m.s)if(alive(x)||(spawn&&x.st==SPAWN))return true;return false;}
static bool hasstuck(const Mach&m){for(auto&x:m.s)if(x.st==STUCK)return true;return false;}
static bool heldany(const St&s,int n){for(int k=0;k<K;k++)if(s.al[k][n].st==1)return true;return false;}
static void reset_watch(St&s,int n){for(int w=0;w<2;w++)s.c[w][n]=s.un[w][n]=0;s.bc[n]=s.bun[n]=0;s.na[n]=C.newer?C.L:0;}
static void stopall(St&s){if(s.ph==1)s.ph=2;}
static void conclude(St&s){for(int n=0;n<2;n++)if(s.al[s.att][n].st==1)return;if(s.ph){s.ph=0;s.att++;}}
static void release(St&s,int n,int except){bool any=false;for(int k=0;k<K;k++)if(s.al[k][n].st==1&&s.al[k][n].inc!=except){s.al[k][n].st=2;any=true;}if(any&&s.ph){stopall(s);if(on(GANG))conclude(s);else{s.ph=0;s.att++;}}}
static const char* bad(const St&s){                            // S1, S3, S2
  int lv[2][K];memset(lv,0,sizeof lv);int cnt=0,last=-1;
  for(int m=0;m<2;m++){bool ex=!s.m[m].susp&&!s.m[m].dead;int here=0;for(int k=0;k<K;k++){auto&x=s.m[m].s[k];if(!ex)continue;
    if(alive(x)){here++;lv[m][k]=1;if(last>=0&&last!=k)cnt=1;last=k;}else if(x.st==STUCK)here+=16;}
    if((here&15)>1||((here&15)&&here>=16))return "S1 two workers hold one GPU";}
  if(cnt)return "S1 two attempts of a job live";
  if(C.clone)for(int k=0;k<K;k++)if(lv[0][k]&&lv[1][k])return "S1 one allocation runs twice";
  for(int m=0;m<2;m++)for(int k=0;k<K;k++){auto&x=s.m[m].s[k];if(alive(x)&&(x.fl&REP))return "S3 a worker runs after its end was reported";
    if(!C.onlyS1&&lv[m][k]&&s.al[k][nodeof(m)].st==2)return "S2 GPU released while its worker lives";}
  return 0;}
static void norm(St&s){
  for(int m=0;m<2;m++){auto&M=s.m[m];if(C.NH==2&&memcmp(&M.hb[0],&M.hb[1],2)<0)swap(M.hb[0],M.hb[1]);
    for(int k=0;k<K;k++){auto&x=M.s[k];if(x.st==NONE||x.st==DEAD||x.st==STUCK){x.left=0;x.fl&=(TOMB|REP);}
      if(on(APPL)&&on(ORDINC)){auto&a=s.al[k][nodeof(m)];
        if(!C.clone&&a.st==2&&(x.st==NONE||x.st==DEAD)&&((a.inc>>1)<M.gen||M.appl>2*k)){x={0,0,0};a.inc=0;}}}}
  if(C.NW==2){if(memcmp(s.c[0],s.c[1],2)<0||(memcmp(s.c[0],s.c[1],2)==0&&memcmp(s.un[0],s.un[1],2)<0)){for(int n=0;n<2;n++){swap(s.c[0][n],s.c[1][n]);swap(s.un[0][n],s.un[1][n]);}}}
  for(int k=0;k<K;k++)for(int n=0;n<2;n++)if(s.al[k][n].st==2)s.rep[k]&=~(1<<n);
  if(on(GEN)){for(int b=2;b<8;b++){int m=b&1,n=nodeof(m);if(s.joined[n]&&(b>>1)<=(s.joined[n]>>1))s.regs&=~(1<<b);}s.regbad&=s.regs;}
  if(on(SILINC))for(int b=2;b<8;b++){int n=nodeof(b&1);if(s.joined[n]!=b){s.sil&=~(1<<b);s.silo&=~(1<<b);}}
  if(!C.prest)for(int n=0;n<2;n++)s.bc[n]=s.bun[n]=0;
  if(s.att>=C.AMAX){/* nothing more is placed */}
}
enum Act{SENDHB,APPEND,ACK,DROP,START,RUN,HAND,STOP,KILL,REPORT,EXIT,CRASH,RESTART,REJOIN,FKILL,FENCE,DIE,BOOTA,SUSP,RESUMEA,FREEZE,THAW,SCRASH,STICK,UNSTICK,
  JOIN,ACCREP,PLACE,PREEMPT,DECLARE,LOST,OPLOST,READ,PREST,CKPT,TAIL,FAKE,TSET,TADOPT,TRET,TICK};
static const char*AN[]={"agent sends heartbeat","broker appends heartbeat","ack reaches agent","heartbeat lost","start order reaches agent, step forked","step starts worker","agent hands deadline to step","stop order reaches agent","worker killed","agent reports worker stopped","worker ends by itself","agent crashes","agent restarts","agent makes new incarnation, registers","agent kills step (lapsed)","fence order reaches agent","machine dies","machine boots, registers","machine suspended","machine resumes","step frozen","step thaws","step crashes","kill does not succeed (D state)","D state ends","placement: NodeJoined","placement: accepts stop report","placement: JobPlaced","placement: JobPreempted","placement shell finds node silent","placement: NodeLost, releases","operator declares node lost","placement reads heartbeat","placement process restarts","placement checkpoints silence","broker loses unread tail","executor reports for absent agent","operator changes stop_after","agent adopts terms","placement retires old terms","TICK"};
typedef function<void(St&,int,int,int)> Emit;
static void kill(Step&x){x.st=DEAD;x.left=0;x.fl|=TOMB;x.fl&=~(FROZEN|OVER);}
static void expand(const St&S,const Emit&E){
  auto go=[&](int a,int p,int q,auto f){St t=S;f(t);E(t,a,p,q);};
  for(int m=0;m<2;m++){const Mach&M=S.m[m];int n=nodeof(m);bool act=M.up&&!M.susp&&!M.dead;bool rich=m==0||C.two||C.clone;   // the other machine is healthy: orders and reports only
    for(int h=0;h<C.NH&&rich;h++){const Hb&b=M.hb[h];
      if(act&&!b.st&&(h==0||M.hb[0].st)&&(M.left||M.fresh||!on(NORES)))go(SENDHB,m,h,[&](St&t){t.m[m].hb[h]={1,0};});
      if(b.st==1||(b.st==2&&C.dup&&S.bdup<C.dup))go(APPEND,m,h,[&](St&t){if(b.st==2)t.bdup++;t.m[m].hb[h].st=2;if(t.joined[n]==inc(t,m)&&(!C.newer||b.age<t.na[n])){if(C.newer)t.na[n]=b.age;for(int w=0;w<C.NW;w++)t.un[w][n]=1;t.bun[n]=1;}});   // newer: an old or repeated one does not count
      if(b.st==2&&act)go(ACK,m,h,[&](St&t){auto&X=t.m[m];int v=on(SEND)?LL(X)-b.age:LL(X);if(v<0)v=0;if((X.left||X.fresh||!on(NORES))&&v>X.left){X.left=v;if(!on(STEPDL))for(auto&x:X.s)if(alive(x))x.left=v;}if(X.left)X.fresh=0;X.hb[h]={0,0};});
      if(b.st)go(DROP,m,h,[&](St&t){t.m[m].hb[h]={0,0};});}
    for(int k=0;k<K;k++){const Step&x=M.s[k];const Al&a=S.al[k][n];
      bool mine=a.st&&(a.inc==inc(S,m)||(!on(ORDINC)&&a.inc)||(!on(UNIQ)&&(a.inc>>1)==M.gen));
      if(act&&mine&&M.left&&(x.st==NONE||(!on(APPL)&&x.st==DEAD))&&(!on(APPL)||M.appl<=2*k))
        go(START,m,k,[&](St&t){auto&X=t.m[m];X.s[k]={SPAWN,X.left,(u8)(on(APPL)?0:(x.fl&REP))};if(on(APPL))X.appl=2*k+1;});
      if(!M.dead&&!M.susp&&x.st==SPAWN&&!(x.fl&FROZEN))go(RUN,m,k,[&](St&t){auto&y=t.m[m].s[k];if((x.left||!on(STEPCHK))&&!(x.fl&TOMB))y.st=LIVE;else kill(y);});
      if(act&&(x.st==SPAWN||alive(x))&&x.left<M.left&&(x.left||!on(STEPNORES)))go(HAND,m,k,[&](St&t){t.m[m].s[k].left=M.left;});
      bool ordered=a.st&&(S.att>k||(S.att==k&&S.ph==2))&&(a.inc==inc(S,m)||!on(ORDINC));
      if(act&&ordered&&M.appl<=2*k+1&&(on(APPL)||x.st!=NONE))
        go(STOP,m,k,[&](St&t){auto&X=t.m[m];if(X.appl<2*k+2)X.appl=2*k+2;auto&y=X.s[k];if(y.st==SPAWN)kill(y);else if(y.st==LIVE)y.st=TERM;});
      if(!M.dead&&!M.susp&&x.st==TERM)go(KILL,m,k,[&](St&t){::kill(t.m[m].s[k]);});
      if(act&&a.st==1&&a.inc==inc(S,m)&&!(x.fl&REP)&&!(S.rep[k]>>n&1)){
        bool over=x.st==DEAD||(x.st==NONE&&(M.appl>2*k))||(!on(REPDEAD)&&(x.st==TERM||x.st==STUCK))||(!on(TOMBR)&&x.st==SPAWN&&(x.fl&DOUBT));
        if(over)go(REPORT,m,k,[&](St&t){t.rep[k]|=1<<n;if(x.st!=NONE)t.m[m].s[k].fl|=REP;});}
      if(!M.dead&&!M.susp&&alive(x)&&!(x.fl&FROZEN))go(EXIT,m,k,[&](St&t){::kill(t.m[m].s[k]);});
      bool lapsed=!M.left&&!M.fresh;
      if(act&&lapsed&&(x.st==SPAWN||alive(x)))go(FKILL,m,k,[&](St&t){::kill(t.m[m].s[k]);});
      if(rich&&C.frz&&S.bfrz<C.frz&&alive(x)&&!(x.fl&FROZEN)&&(M.up||!on(BACKUP))&&!M.dead&&!M.susp)go(FREEZE,m,k,[&](St&t){t.m[m].s[k].fl|=FROZEN;t.bfrz++;});
      if((x.fl&FROZEN)&&!M.dead&&!M.susp)go(THAW,m,k,[&](St&t){t.m[m].s[k].fl&=~(FROZEN|OVER);});
      if(rich&&C.scr&&S.bscr<C.scr&&alive(x)&&!M.dead&&!M.susp)go(SCRASH,m,k,[&](St&t){t.bscr++;auto&y=t.m[m].s[k];if(on(PDEATH))::kill(y);else y.fl|=FROZEN;});
      if(rich&&C.stuck&&S.bstuck<C.stuck&&!M.dead&&!M.susp&&(x.st==TERM||(x.st==LIVE&&!x.left)))go(STICK,m,k,[&](St&t){t.bstuck++;auto&y=t.m[m].s[k];y.st=STUCK;});
      if(x.st==STUCK)go(UNSTICK,m,k,[&](St&t){::kill(t.m[m].s[k]);});}
    bool fz=false;for(auto&x:M.s)if(x.fl&FROZEN)fz=true;
    if(!rich)continue;
    if(M.up&&S.bcrash<C.crash&&!M.dead&&(!fz||!on(PDEATH)||C.both))go(CRASH,m,0,[&](St&t){t.bcrash++;auto&X=t.m[m];X.up=0;X.hb[0]=X.hb[1]={0,0};});
    /* ad: the forked step answers and is adopted */ if(!M.up&&!M.dead&&!M.susp)for(int ad=0;ad<2;ad++)go(RESTART,m,ad,[&](St&t){auto&X=t.m[m];X.up=1;for(auto&x:X.s)if(x.st==SPAWN&&!ad){if(on(TOMBR))::kill(x);else x.fl|=DOUBT;}});
    auto rejoin=[&](St&t,bool fresh_boot){auto&X=t.m[m];X.gen++;X.left=on(FIRST)?C.L:0;if(X.ta)X.left=min<int>(X.left,C.L2);X.fresh=!on(FIRST);X.hb[0]=X.hb[1]={0,0};
      t.regs|=1<<inc(t,m);if(hasstuck(X)&&on(DEXCL))t.regbad|=1<<inc(t,m);if(fresh_boot)for(auto&x:X.s)if(x.st!=NONE)::kill(x);};
    if(act&&M.gen<C.GMAX+1&&(!M.left||!some(M,true))&&(!some(M,true)||!on(REGDEAD)))go(REJOIN,m,0,[&](St&t){rejoin(t,false);});
    if(act&&S.lost[n]&&S.joined[n]==inc(S,m)&&M.left)go(FENCE,m,0,[&](St&t){t.m[m].left=0;t.m[m].fresh=0;});
    if(S.bdie<C.die&&!M.dead&&!(C.clone&&m==1))go(DIE,m,0,[&](St&t){t.bdie++;auto&X=t.m[m];X.dead=1;X.up=0;X.susp=0;X.left=0;X.hb[0]=X.hb[1]={0,0};for(auto&x:X.s)if(x.st!=NONE)::kill(x);});
    if(M.dead&&M.gen<C.GMAX+1)go(BOOTA,m,0,[&](St&t){auto&X=t.m[m];X.dead=0;X.up=1;rejoin(t,true);});
    if(C.sus&&S.bsus<C.sus&&!M.dead&&!M.susp)go(SUSP,m,0,[&](St&t){t.bsus++;t.m[m].susp=1;});
    if(M.susp)go(RESUMEA,m,0,[&](St&t){auto&X=t.m[m];X.susp=0;for(auto&x:X.s)if((alive(x)||x.st==SPAWN)&&!x.left&&(!(x.fl&FROZEN)||((x.fl&OVER)&&X.up&&on(BACKUP))))::kill(x);});}   // expired timers fire at once
  for(int n=0;n<N();n++){
    for(int b=2;b<8;b++)if((S.regs>>b&1)&&nodeof(b&1)==n){int j=S.joined[n];
      bool newer=on(GEN)?(b>>1)>(j>>1):b!=j;bool same=(b&1)==(j&1)||!on(MACH);bool wait=!same&&heldany(S,n);
      if(newer&&!wait)go(JOIN,n,b,[&](St&t){release(t,n,b);t.joined[n]=b;t.lost[n]=t.op[n]=0;t.use[n]=!(S.regbad>>b&1);reset_watch(t,n);if(on(GEN))t.regs&=~(1<<b);});}
    for(int k=0;k<K;k++)if((S.rep[k]>>n&1)&&S.al[k][n].st==1)go(ACCREP,n,k,[&](St&t){t.al[k][n].st=2;t.rep[k]&=~(1<<n);stopall(t);conclude(t);});
    if(!on(EXECREP))for(int k=0;k<K;k++)if(S.al[k][n].st==1&&S.att==k&&S.ph==2)go(FAKE,n,k,[&](St&t){t.al[k][n].st=2;conclude(t);});
    for(int w=0;w<C.NW&&(n==0||C.two);w++){
      if(S.un[w][n])go(READ,w,n,[&](St&t){t.un[w][n]=0;t.c[w][n]=0;});
      int lim=T(S,n);if(!on(MONO))lim=C.L-1;
      if(C.raise&&n==0&&S.joined[n]&&!(S.silo>>S.joined[n]&1)&&S.c[w][n]>=C.L+2&&!S.un[w][n])go(DECLARE,w,n,[&](St&t){t.silo|=1<<t.joined[n];});   // a zombie that has not folded the change
      if(S.joined[n]&&!(S.sil>>S.joined[n]&1)&&S.c[w][n]>=lim&&(!S.un[w][n]||!on(VERIFY)))go(DECLARE,w,n,[&](St&t){t.sil|=1<<t.joined[n];});
      if(C.prest&&S.bprest<C.prest){
        go(PREST,w,n,[&](St&t){t.bprest++;for(int i=0;i<N();i++){t.c[w][i]=t.bc[i];t.un[w][i]=on(RESUME)?t.bun[i]:0;}});}
      if(C.prest&&S.c[w][n]&&(S.bc[n]!=S.c[w][n]||S.bun[n]!=S.un[w][n]))go(CKPT,w,n,[&](St&t){t.bc[n]=t.c[w][n];t.bun[n]=t.un[w][n];});}
    bool flag=on(SILINC)?(S.sil>>S.joined[n]&1):false;if(!on(SILINC))for(int b=2;b<8;b++)if((S.sil>>b&1)&&nodeof(b&1)==n)flag=true;
    if(C.raise&&(S.silo>>S.joined[n]&1)&&(!S.tset||!on(RECHECK)))flag=true;
    if(flag&&(!S.lost[n]||heldany(S,n)))go(LOST,n,0,[&](St&t){t.lost[n]=1;release(t,n,0);});
    if(C.op&&(n==0||C.two)&&S.bop<C.op&&!S.lost[n]&&S.joined[n])go(OPLOST,n,0,[&](St&t){t.bop++;t.lost[n]=1;if(!on(OPWAIT))release(t,n,0);else if(heldany(t,n))stopall(t);});}
  if(S.ph==0&&S.att<C.AMAX){
    auto ok=[&](int n){return S.joined[n]&&!S.lost[n]&&S.use[n];};
    auto free=[&](int n){for(int k=0;k<K;k++)if(S.al[k][n].st==1)return false;return true;};
    bool prev=true;if(on(GANG))for(int n=0;n<2;n++)prev=prev&&free(n);
    if(C.G==1){for(int n=0;n<N();n++)if(ok(n)&&free(n)&&prev)go(PLACE,S.att,n,[&](St&t){t.al[t.att][n]={t.joined[n],1};t.ph=1;});}
    else if(ok(0)&&ok(1)&&free(0)&&free(1)&&prev)go(PLACE,S.att,9,[&](St&t){for(int n=0;n<2;n++)t.al[t.att][n]={t.joined[n],1};t.ph=1;});
    else if(!on(GANG))for(int n=0;n<2;n++)if(ok(n)&&free(n))go(PLACE,S.att,n,[&](St&t){t.al[t.att][n]={t.joined[n],1};t.ph=1;});}
  if(S.ph==1)go(PREEMPT,S.att,0,[&](St&t){t.ph=2;});
  if(C.tail&&S.btail<C.tail)go(TAIL,0,0,[&](St&t){t.btail++;for(int n=0;n<2;n++){for(int w=0;w<2;w++){t.un[w][n]=0;if(on(RESET))t.c[w][n]=0;}t.bun[n]=0;if(on(RESET))t.bc[n]=0;}});
  if(C.raise){if(!S.tset)go(TSET,0,0,[&](St&t){t.tset=1;});const Mach&M=S.m[0];if(S.tset&&!M.ta&&M.up&&!M.dead&&!M.susp)go(TADOPT,0,0,[&](St&t){t.m[0].ta=1;});}
  if(C.terms){if(!S.tset)go(TSET,0,0,[&](St&t){t.tset=1;});
    const Mach&M=S.m[0];if(S.tset&&!M.ta&&M.up&&!M.dead&&!M.susp)go(TADOPT,0,0,[&](St&t){t.m[0].ta=1;});
    if(M.ta&&!S.tret&&M.up&&!M.dead&&M.left<=C.L2){bool f=true;for(auto&x:M.s)if((x.st==SPAWN||alive(x))&&x.left>C.L2)f=false;if(f)go(TRET,0,0,[&](St&t){t.tret=1;if(on(RETIRE))reset_watch(t,0);});}}
  {St t=S;                                                                                        // TICK
   for(int m=0;m<2;m++){auto&X=t.m[m];if(X.dead||(m==1&&!C.two&&!C.clone))continue;bool cnt=!X.susp||on(BOOT);
     for(auto&h:X.hb)if(h.st){int l=max(C.L,C.L2);if(cnt&&h.age<l)h.age++;if(h.age>=l&&on(SEND))h={0,0};}
     for(auto&x:X.s){if(x.st!=SPAWN&&!alive(x))continue;
       if(!x.left&&alive(x)&&!X.susp){
         if(x.fl&FROZEN){if(X.up&&on(BACKUP)){if(x.fl&OVER)::kill(x);else x.fl|=OVER;}}
         else if(x.st==TERM&&!on(GRACE)){}
         else ::kill(x);}
       else if(x.left&&cnt)x.left--;
       else if(X.susp&&cnt&&alive(x)&&(x.fl&FROZEN))x.fl|=OVER;}
     if(X.left&&cnt)X.left--;}
   if(C.newer)for(int n=0;n<N()&&(n==0||C.two);n++)if(t.na[n]<C.L)t.na[n]++;
   for(int w=0;w<C.NW;w++)for(int n=0;n<N()&&(n==0||C.two);n++)if(S.joined[n]&&t.c[w][n]<C.T)t.c[w][n]++;
   E(t,TICK,0,0);}
}
static St init(){St s;memset(&s,0,sizeof s);for(int m=0;m<2;m++){auto&M=s.m[m];M.gen=1;if(C.clone&&m==1){M.dead=1;continue;}M.up=1;M.left=C.L;s.joined[nodeof(m)]=2+m;s.use[nodeof(m)]=1;if(C.newer)s.na[nodeof(m)]=C.L;}return s;}
// L3: from a reachable state, with the faults over and every message delivered, node and ledger agree and the job runs.
static const char* healed(St s){auto pick=[&](int a,int p=-1,int q=-1){bool done=false;St r=s;expand(s,[&](St&t,int b,int x,int y){if(!done&&a==b&&(p<0||p==x)&&(q<0||q==y)){done=true;r=t;}});if(done){s=r;norm(s);}return done;};
  auto all=[&](int a){int i=0;while(i++<8&&pick(a));};
  for(int m=0;m<2;m++){if(s.m[m].susp)pick(RESUMEA,m);}
  all(THAW);all(UNSTICK);
  for(int r=0;r<4*(C.T+2);r++){
    for(int m=0;m<2;m++)if(!s.m[m].dead&&!s.m[m].up)pick(RESTART,m);
    all(FENCE);all(FKILL);
    for(int m=0;m<2;m++){auto&M=s.m[m];if(M.up&&!M.dead&&(!M.left||(s.joined[nodeof(m)]&&(s.regs==0)&&s.use[nodeof(m)]==0&&!hasstuck(M)))&&!some(M,true))pick(REJOIN,m);}
    all(JOIN);
    for(int k=0;k<K;k++)for(int m=0;m<2;m++){if(s.al[k][nodeof(m)].st==1)pick(START,m,k);pick(STOP,m,k);}
    all(RUN);all(KILL);
    // an allocation that the ledger holds and the agent does not is answered for ("confirm")
    all(REPORT);all(ACCREP);
    for(int m=0;m<2;m++){if(s.m[m].hb[0].st)pick(DROP,m,0);if(C.NH>1&&s.m[m].hb[1].st)pick(DROP,m,1);if(pick(SENDHB,m,0)){pick(APPEND,m,0);all(READ);pick(ACK,m,0);}}
    all(READ);all(HAND);all(DECLARE);all(LOST);
    if(s.ph==0)pick(PLACE);
    pick(TICK);if(bad(s))return bad(s);}
  for(int m=0;m<2;m++)for(int k=0;k<K;k++){auto&x=s.m[m].s[k];if(alive(x)&&!(s.al[k][nodeof(m)].st==1&&s.al[k][nodeof(m)].inc==inc(s,m)))return "L3 a worker lives that the ledger does not hold";}
  for(int n=0;n<2;n++)for(int k=0;k<K;k++)if(s.al[k][n].st==1){bool f=false;for(int m=0;m<2;m++)if(nodeof(m)==n&&alive(s.m[m].s[k]))f=true;if(!f){return "L3 the ledger holds an allocation that no node runs";}}
  if(s.ph==0&&s.att<C.AMAX){bool can=true;for(int n=0;n<N();n++)if(s.m[n].gen>=C.GMAX+1||s.m[n].dead||s.lost[n])can=false;if(can)return "L3 nothing runs though nodes are there";}
  return 0;}
static string show(const St&s,int a,int p,int q){char b[200];snprintf(b,sizeof b,"%s [%d%s%s]",AN[a],p,q?",":"",q?to_string(q).c_str():"");(void)s;return b;}
static u64 hs(const St&s){const u8*p=(const u8*)&s;u64 h=1469598103934665603ull;for(size_t i=0;i<sizeof s;i++){h^=p[i];h*=1099511628211ull;}h^=h>>29;h*=0xbf58476d1ce4e5b9ull;return h^(h>>32);}
static int run(const Cfg&c,bool trace){C=c;clock_t t0=clock();vector<St>A;vector<uint32_t>par;vector<u8>ac,ap,aq;size_t cap=1<<16;vector<uint32_t>H(cap,0);
  auto add=[&](St&s,uint32_t p,int a,int x,int y)->long{norm(s);u64 h=hs(s);size_t i=h&(cap-1);while(H[i]){if(!memcmp(&A[H[i]-1],&s,sizeof s))return -1;i=(i+1)&(cap-1);}
    A.push_back(s);par.push_back(p);ac.push_back(a);ap.push_back(x);aq.push_back(y);H[i]=A.size();
    if(A.size()*2>cap){cap*=2;vector<uint32_t>G(cap,0);for(size_t j=0;j<A.size();j++){size_t k=hs(A[j])&(cap-1);while(G[k])k=(k+1)&(cap-1);G[k]=j+1;}H.swap(G);}return A.size()-1;};
  St z=init();add(z,0,TICK,0,0);map<string,pair<long,int>>V;long lo=-1;string lm;long heals=0;bool limit=false;
  for(size_t i=0;i<A.size();i++){if((long)A.size()>c.lim){limit=true;break;}St s=A[i];
    expand(s,[&](St&t,int a,int x,int y){long k=add(t,i,a,x,y);if(k<0)return;const char*e=bad(A[k]);if(e){if(!V.count(e))V[e]={k,0};V[e].second++;}});
    if(V.size()&&(!c.onlyS1||true)){bool s1=false;for(auto&v:V)if(v.first[1]=='1'||v.first[1]=='3')s1=true;if(s1)break;}
    if(c.heal&&i%7==0&&!bad(s)){heals++;const char*e=healed(s);if(e&&lo<0){lo=i;lm=e;}}}
  auto depth=[&](long k){int d=0;while(k){k=par[k];d++;}return d;};
  printf("%-64s states %9zu%s",c.name,A.size(),limit?" (LIMIT)":"        ");
  if(V.empty()&&lo<0)printf(" OK");else for(auto&v:V)printf(" RED %s (after %d steps)",v.first.c_str(),depth(v.second.first));
  if(lo>=0)printf(" RED %s",lm.c_str());if(c.heal)printf("  healed %ld",heals);printf("  %.1fs\n",(clock()-t0)/(double)CLOCKS_PER_SEC);
  if(trace){auto pr=[&](long k){vector<long>w;while(k){w.push_back(k);k=par[k];}for(size_t i=w.size();i--;)printf("      %s\n",show(A[w[i]],ac[w[i]],ap[w[i]],aq[w[i]]).c_str());};
    for(auto&v:V){printf("    %s:\n",v.first.c_str());pr(v.second.first);} if(lo>=0){printf("    %s:\n",lm.c_str());pr(lo);}}
  fflush(stdout);return V.size()+(lo>=0);}
// Long random executions with every fault and larger constants: not exhaustive, but deep.
static int walks(const Cfg&c,int n,int len){C=c;clock_t t0=clock();u64 r=88172645463325252ull;auto rnd=[&](u64 m){r^=r<<13;r^=r>>7;r^=r<<17;return r%m;};long steps=0,placed=0,lost=0;map<string,long>V;
  for(int i=0;i<n;i++){St s=init();int wt[64];for(int a=0;a<64;a++){const int o[4]={0,1,2,8};wt[a]=o[rnd(4)];}if(!wt[TICK])wt[TICK]=2;   // each run prefers other actions
    for(int j=0;j<len;j++){vector<pair<St,int>>nx;long sum=0;expand(s,[&](St&t,int a,int,int){nx.push_back({t,a});sum+=wt[a];});
      long pick=rnd(sum);size_t k=0;while((pick-=wt[nx[k].second])>=0)k++;
      s=nx[k].first;placed+=nx[k].second==PLACE;lost+=nx[k].second==LOST;norm(s);steps++;const char*e=bad(s);if(e){V[e]++;break;}}}
  printf("%-64s steps  %9ld       %s  placed %ld, lost %ld",c.name,steps,V.empty()?" OK":" RED",placed,lost);for(auto&v:V)printf(" %s x%ld",v.first.c_str(),v.second);printf("  %.1fs\n",(clock()-t0)/(double)CLOCKS_PER_SEC);fflush(stdout);return V.size();}
#include "configs.h"

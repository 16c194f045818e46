{
  description = "systape: flight recorder for Linux";

  inputs.nixpkgs.url = "github:NixOS/nixpkgs/nixos-unstable";

  outputs =
    { self, nixpkgs }:
    let
      # record needs x86-64; analyze reads tapes anywhere
      systems = [ "x86_64-linux" "aarch64-linux" "aarch64-darwin" ];
      each = function: nixpkgs.lib.genAttrs systems (system: function nixpkgs.legacyPackages.${system});
      version = (builtins.fromTOML (builtins.readFile ./Cargo.toml)).workspace.package.version;

      package =
        pkgs: pname: crates: more:
        pkgs.rustPlatform.buildRustPackage (
          {
            inherit pname version;
            src = self;
            cargoLock.lockFile = ./Cargo.lock;
            cargoBuildFlags = builtins.concatMap (crate: [ "-p" crate ]) crates;
            # they record, which no sandbox of a build allows
            doCheck = false;
            SYSTAPE_REVISION = self.shortRev or "";
            nativeBuildInputs = [ pkgs.installShellFiles ];
            postInstall = ''
              for program in $out/bin/*; do
                name=$(basename $program)
                $program --generate man > $name.1 && installManPage $name.1
                for shell in bash zsh fish; do $program --generate $shell > $name.$shell; done
                installShellCompletion --cmd $name --bash $name.bash --zsh $name.zsh --fish $name.fish
              done
            '';
            meta.mainProgram = pname;
            meta.license = [ pkgs.lib.licenses.mit pkgs.lib.licenses.asl20 ];
          }
          // more pkgs
        );

      analyzeFor = pkgs: package pkgs "analyze" [ "systape-analyzer" ] (pkgs: { });
      systapeFor =
        pkgs:
        package pkgs "systape" [ "systape-recorder" "systape-analyzer" "systape" ] (pkgs: {
          # hardening flags of the system's compiler are unknown to BPF
          hardeningDisable = [ "all" ];
          nativeBuildInputs = [ pkgs.installShellFiles pkgs.llvmPackages.clang-unwrapped pkgs.pkg-config ];
          buildInputs = [ pkgs.elfutils pkgs.zlib ];
        });
    in
    {
      packages = each (
        pkgs:
        { analyze = analyzeFor pkgs; }
        // nixpkgs.lib.optionalAttrs (pkgs.stdenv.hostPlatform.system == "x86_64-linux") {
          systape = systapeFor pkgs;
          default = systapeFor pkgs;
        }
      );
    };
}
